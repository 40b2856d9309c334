#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

namespace runjob {

/// Connections over TCP and between processes of one host.
using StreamProtocol = boost::asio::generic::stream_protocol;
using StreamSocket = StreamProtocol::socket;
using StreamAcceptor = boost::asio::basic_socket_acceptor<StreamProtocol>;

/// Listens at `endpoint`; if that fails, `error` is set.
StreamAcceptor listen_at(boost::asio::any_io_executor executor, const StreamProtocol::endpoint& endpoint,
                         boost::system::error_code& error);
/// Listens on every address of this host, of IPv6 and IPv4 where there are both. `port`: 0 for any that is free. If
/// that fails, `error` is set.
StreamAcceptor listen_everywhere(boost::asio::any_io_executor executor, int port, boost::system::error_code& error);
/// The TCP port at which it listens.
int port_of(const StreamAcceptor& acceptor);
/// The IP address without its port. An IPv4 address is written as one also if it came through a socket for both kinds.
/// "" if `endpoint` has none.
std::string ip_address_text(const StreamProtocol::endpoint& endpoint);

/// Accepts connections, and bounds what they cost while their other ends have not shown who they are. A connection
/// above the bound replaces the oldest one, so that nobody who stays silent keeps others out. One that takes longer
/// than the limit is refused. While this process has no free descriptor, connections wait until it has one.
///
/// Owner    closes its acceptors and the connections that it serves at stop(), and when it is destroyed. A new program
///          does not inherit any of them (close-on-exec).
/// Threads  the loop's one thread; the constructor and accept_from() may run before the loop.
class BoundedListener {
 public:
  struct Bounds {
    std::size_t connections;           ///< that are served at the same time
    std::chrono::milliseconds served;  ///< the longest time for which one connection is served
  };
  /// Serves one connection. When it ends, the connection is closed, unless the socket was moved to another owner. It is
  /// cancelled at a bound and by stop(); it may then go on up to its next co_await, also after stop() has returned.
  /// `peer`: the other end, for messages: "127.0.0.1 port 4242".
  /// Errors  Error: why the connection is refused, which is logged for the first ten, so that a port scanner does not
  ///         fill the log. Error(kConnect), which is not logged: the other end has left.
  using Serve = std::function<boost::asio::awaitable<void>(StreamSocket socket, std::string peer)>;

  BoundedListener(boost::asio::any_io_executor executor, Bounds bounds, Serve serve);
  ~BoundedListener();
  BoundedListener(const BoundedListener&) = delete;
  BoundedListener& operator=(const BoundedListener&) = delete;

  /// The bounds hold for the connections of all acceptors together.
  void accept_from(StreamAcceptor acceptor);
  void stop();

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with its coroutines, which may outlive this object by one turn of the loop
};

}  // namespace runjob
