#pragma once

#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/channel.hpp"

namespace runjob {

/// Starts `agent_path` on this host, as a process of its own, with one end of a socket pair as its standard
/// input and output; the channel is the other end. Errors  Error(kUnavailable) naming the path when it cannot
/// be executed; Error(kSystem).
std::unique_ptr<Channel> start_local_agent(boost::asio::any_io_executor executor, const std::string& agent_path);

}  // namespace runjob
