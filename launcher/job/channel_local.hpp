#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "base/unique_handle.hpp"
#include "launcher/agent/host_facts.hpp"
#include "launcher/channel/channel.hpp"

namespace runjob {

/// Forks the agent of this host from this process. The agent has one end of a socket pair as its standard input and
/// output; the result is the other end. There is no exec, which would cost a short job a tenth of its time.
/// Threads  neither threads nor an io_context may exist yet: the agent makes its own ones.
/// Errors   Error(kSystem).
UniqueFd fork_local_agent(Neighbours neighbours);

/// The channel to a local agent over the launcher's end of its socket pair.
std::unique_ptr<Channel> local_channel(boost::asio::any_io_executor executor, UniqueFd socket);

}  // namespace runjob
