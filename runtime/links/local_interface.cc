#include "runtime/links/local_interface.hpp"

#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>

namespace runjob::runtime {
namespace {

bool is_same_address(const sockaddr* address, const sockaddr_storage& other) {
  if (address == nullptr || address->sa_family != other.ss_family) return false;
  if (address->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(other).sin_addr.s_addr;
  }
  return address->sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(other).sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace

std::string local_interface(int socket) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  ifaddrs* first = nullptr;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) != 0 || ::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(first, ::freeifaddrs);
  for (const ifaddrs* each = list.get(); each != nullptr; each = each->ifa_next) {
    if (is_same_address(each->ifa_addr, own)) return each->ifa_name;
  }
  return {};
}

}  // namespace runjob::runtime
