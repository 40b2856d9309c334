#include "runtime/links/numeric_address.hpp"

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {

AddressList parse_address(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    throw Error(Errc::kConnect, fmt::format("'{}' is no numeric address: {}", address, ::gai_strerror(error)));
  }
  return {list, ::freeaddrinfo};
}

std::string peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST];
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    return "an unknown address";
  return host;
}

}  // namespace runjob::runtime
