#include "runtime/job/host_address.hpp"

#include <algorithm>
#include <cerrno>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

bool is_link_local(const sockaddr& address) {
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 v6;
  std::copy_n(reinterpret_cast<const char*>(&address), sizeof v6, reinterpret_cast<char*>(&v6));
  return IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) != 0;
}

}  // namespace

std::vector<InterfaceAddress> list_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw system_error("listing the network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<InterfaceAddress> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || is_link_local(*entry->ifa_addr)) continue;
    char text[NI_MAXHOST];
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(entry->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    result.push_back({entry->ifa_name, text, (entry->ifa_flags & IFF_LOOPBACK) != 0, family == AF_INET6});
  }
  return result;
}

std::string choose_address(const std::vector<InterfaceAddress>& addresses, const AddressSettings& settings) {
  const std::string& interface = settings.interface;
  if (interface.empty() && !settings.address.empty()) return settings.address;
  if (interface.empty() && settings.one_host) return "127.0.0.1";
  for (const bool ipv6 : {false, true}) {
    for (const InterfaceAddress& candidate : addresses) {
      const bool wanted = interface.empty() ? !candidate.loopback : candidate.interface == interface;
      if (wanted && candidate.ipv6 == ipv6) return candidate.address;
    }
  }
  std::set<std::string> names;
  for (const InterfaceAddress& candidate : addresses) names.insert(candidate.interface);
  const std::string what = interface.empty()
                               ? "no network interface that other hosts could reach is up"
                               : fmt::format("RUNJOB_GLOO_IFACE: '{}' is not up or has no address", interface);
  throw Error(Errc::kUsage, fmt::format("{}; this host has: {}", what, fmt::join(names, ", ")));
}

}  // namespace runjob::runtime
