#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "base/unique_handle.hpp"
#include "launcher/agent/host_facts.hpp"
#include "launcher/channel.hpp"

namespace runjob {

/// Forks this process into the agent of this host, which has one end of a socket pair as its standard input and output;
/// the result is the other end. There is no exec: that would cost a short job a tenth of its time.
/// Threads  neither threads nor an io_context may exist yet: the agent makes its own.
/// Errors   Error(kSystem).
UniqueFd fork_local_agent(Neighbours neighbours);

/// The channel to it.
std::unique_ptr<Channel> local_channel(boost::asio::any_io_executor executor, UniqueFd socket);

}  // namespace runjob
