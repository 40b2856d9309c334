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

}  // namespace runjob::runtime
