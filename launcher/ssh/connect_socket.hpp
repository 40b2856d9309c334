#pragma once

#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace runjob {

/// Connects to the one of `endpoints` that answers first. They are tried in their order, each a quarter of a second
/// after the one before, or as soon as that has failed. So an address that drops everything costs no more than that
/// (RFC 8305, section 5). The socket does not delay small packets.
/// Threads  the loop's; cancellation ends it at once.
/// Errors   Error(kConnect) with the first address's reason: "10.0.0.1 port 22: Connection refused".
boost::asio::awaitable<boost::asio::ip::tcp::socket> connect_socket(
    boost::asio::any_io_executor executor, std::vector<boost::asio::ip::tcp::endpoint> endpoints);

}  // namespace runjob
