#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "base/unique_handle.hpp"
#include "launcher/agent/host_facts.hpp"
#include "launcher/channel/channel.hpp"
#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// Forks the agent of this host from this process. The agent has one end of a socket pair as its standard input and
/// output; the result is the other end. There is no exec, which would cost a short job a tenth of its time.
/// Threads  neither threads nor an io_context may exist yet: the agent makes its own ones.
/// Errors   Error(kSystem).
UniqueFd fork_local_agent(Neighbours neighbours);

/// The channel to a local agent over the launcher's end of its socket pair.
std::unique_ptr<Channel> local_channel(boost::asio::any_io_executor executor, UniqueFd socket);

/// The host is this machine, and the job reaches it without a network.
bool is_local(const JobSpec& spec, const Host& host);

/// Starts the program runjob-agent on this host, for a host that joins a running job, when it is too late to fork.
/// Errors   Error(kUnavailable) or Error(kSystem).
std::unique_ptr<Channel> start_local_agent(boost::asio::any_io_executor executor);

}  // namespace runjob
