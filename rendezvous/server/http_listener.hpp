#pragma once

#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

/// The sockets of an HttpServer, of either kind. Private to it: includes Boost. It never looks up a name, so that the
/// fully static agent can use it.
namespace runjob::rendezvous {

using StreamSocket = boost::asio::generic::stream_protocol::socket;
using Listener = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

/// Listens on a Unix socket that must not exist yet, of mode 0600.
/// Errors  Error(kSystem): "listen on PATH: REASON".
Listener listen_on_path(boost::asio::any_io_executor executor, const std::string& path);

/// Listens on a numeric address (IPv4 or IPv6) and port, 0 for any free one.
/// Errors  Error(kSystem): "listen on ADDRESS port N: REASON"; Error(kUsage) when `address` is not numeric.
Listener listen_on_address(boost::asio::any_io_executor executor, const std::string& address, int port);

/// The port of a TCP listener; 0 for a Unix socket.
int port_of(const Listener& listener);

/// True if `socket` is a Unix socket and its other end a process of this user (SO_PEERCRED).
bool is_own_users(int socket);

/// The peer, for the log: "10.0.0.3 port 41234", "a process of user 1000".
std::string peer_name(int socket);

/// Sets the options of an accepted socket. Programs that this process starts do not inherit it. On TCP small answers
/// are not delayed, and probes end the connection of a host that vanished within two minutes.
void prepare_accepted(int socket);

}  // namespace runjob::rendezvous
