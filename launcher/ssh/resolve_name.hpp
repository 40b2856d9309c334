#pragma once

#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace runjob {

/// The addresses of `name`, in the order in which they should be tried. A numeric address is itself.
/// Threads  the loop's; the system's resolver, which can take as long as it likes, is asked on a thread of its own that
///          nobody waits for: when the caller is cancelled, it ends by itself. Asio's resolver has one thread for all
///          names, and cannot leave it before it is done.
/// Errors   Error(kConnect): what is wrong with the name, without naming it: "the name is not known".
boost::asio::awaitable<std::vector<boost::asio::ip::tcp::endpoint>> resolve_name(boost::asio::any_io_executor executor,
                                                                                 std::string name, int port);

}  // namespace runjob
