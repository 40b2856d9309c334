#include "rendezvous/server/http_listener.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

void set_option(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof value);
}

int family_of(int socket) {
  int family = AF_UNSPEC;
  socklen_t length = sizeof family;
  ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &length);
  return family;
}

/// The process at the other end of a Unix socket.
std::optional<ucred> credentials(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (family_of(socket) != AF_UNIX || ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return std::nullopt;
  return peer;
}

int port_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  if (address->sa_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
  return 0;
}

}  // namespace

Listener listen_on_path(asio::any_io_executor executor, const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) throw system_error(fmt::format("listen on {}", path), ENAMETOOLONG);
  const asio::local::stream_protocol::endpoint endpoint(path);
  Listener listener(std::move(executor));
  error_code error;
  listener.open(endpoint.protocol(), error);
  if (!error) ::fcntl(listener.native_handle(), F_SETFD, FD_CLOEXEC);
  if (!error) listener.bind(endpoint, error);
  // The mode is set before listen(), so that no other user can connect first. The mode of the directory protects it
  // too.
  if (!error && ::chmod(path.c_str(), 0600) != 0) error = error_code(errno, boost::system::system_category());
  if (!error) listener.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw system_error(fmt::format("listen on {}", path), error.value());
  return listener;
}

Listener listen_on_address(asio::any_io_executor executor, const std::string& address, int port) {
  error_code error;
  const asio::ip::address number = asio::ip::make_address(address, error);
  if (error) throw Error(Errc::kUsage, fmt::format("listen on {}: it is not a numeric address", address));
  const asio::ip::tcp::endpoint endpoint(number, static_cast<std::uint16_t>(port));
  Listener listener(std::move(executor));
  listener.open(endpoint.protocol(), error);
  if (!error) ::fcntl(listener.native_handle(), F_SETFD, FD_CLOEXEC);
  if (!error && port != 0) listener.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) listener.bind(endpoint, error);
  if (!error) listener.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw system_error(fmt::format("listen on {} port {}", address, port), error.value());
  return listener;
}

int port_of(const Listener& listener) {
  error_code ignored;
  const auto endpoint = listener.local_endpoint(ignored);
  return port_of(endpoint.data());
}

bool is_own_users(int socket) {
  const auto peer = credentials(socket);
  return peer && peer->uid == ::geteuid();
}

std::string peer_name(int socket) {
  if (const auto peer = credentials(socket)) return fmt::format("a process of user {}", peer->uid);
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "somebody who hung up";
  const void* number = address.ss_family == AF_INET6
                           ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
                           : &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  ::inet_ntop(address.ss_family, number, text.data(), text.size());
  return fmt::format("{} port {}", text.data(), port_of(reinterpret_cast<const sockaddr*>(&address)));
}

void prepare_accepted(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  if (family_of(socket) == AF_UNIX) return;
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 6);
}

}  // namespace runjob::rendezvous
