#include "launcher/network/interface_facts.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <ifaddrs.h>
#include <limits>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/sockios.h>
#include <memory>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <optional>
#include <sstream>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/unique_handle.hpp"

namespace runjob {
namespace {

template <class Address>
Address copy_of(const sockaddr* address) {
  Address copy;
  std::memcpy(&copy, address, sizeof copy);
  return copy;
}

std::string text_of(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family, address, text, sizeof text);
  return text;
}

template <class Bytes>
int one_bits(const Bytes& mask) {
  std::array<unsigned char, sizeof mask> bytes{};
  std::memcpy(bytes.data(), &mask, sizeof mask);
  int bits = 0;
  for (const unsigned char byte : bytes) bits += std::popcount(byte);
  return bits;
}

std::optional<InterfaceAddress> address_of(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr) return std::nullopt;
  if (entry.ifa_addr->sa_family == AF_INET) {
    const in_addr address = copy_of<sockaddr_in>(entry.ifa_addr).sin_addr;
    return InterfaceAddress{text_of(AF_INET, &address), one_bits(copy_of<sockaddr_in>(entry.ifa_netmask).sin_addr)};
  }
  if (entry.ifa_addr->sa_family == AF_INET6) {
    const in6_addr address = copy_of<sockaddr_in6>(entry.ifa_addr).sin6_addr;
    return InterfaceAddress{text_of(AF_INET6, &address), one_bits(copy_of<sockaddr_in6>(entry.ifa_netmask).sin6_addr)};
  }
  return std::nullopt;
}

/// The driver is asked, because /sys/class/net may show the interfaces of another network namespace.
int speed_mbits(int socket, const std::string& interface) {
  ethtool_cmd command{};
  command.cmd = ETHTOOL_GSET;
  ifreq request{};
  const std::string device = interface.substr(0, interface.find(':'));  // without the label of a second address
  std::copy_n(device.begin(), std::min<std::size_t>(device.size(), IFNAMSIZ - 1), request.ifr_name);
  request.ifr_data = reinterpret_cast<char*>(&command);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return 0;
  const std::uint32_t speed = ethtool_cmd_speed(&command);
  constexpr std::uint32_t kUnknown = static_cast<std::uint32_t>(SPEED_UNKNOWN), kOldUnknown = 65'535;
  if (speed == kUnknown || speed == kOldUnknown || speed > std::numeric_limits<int>::max()) return 0;
  return static_cast<int>(speed);
}

NetworkInterface& interface_called(NetworkFacts& facts, const std::string& name) {
  for (NetworkInterface& each : facts.interfaces) {
    if (each.name == name) return each;
  }
  facts.interfaces.emplace_back().name = name;
  return facts.interfaces.back();
}

struct Route {
  std::string interface;
  std::uint32_t metric = 0;
};

void add_best(const std::vector<Route>& routes, std::set<std::string>& names) {
  const auto less = [](const Route& a, const Route& b) { return a.metric < b.metric; };
  const auto best = std::min_element(routes.begin(), routes.end(), less);
  for (const Route& route : routes) {
    if (route.metric == best->metric) names.insert(route.interface);
  }
}

std::vector<Route> ipv4_default_routes(std::istream& file) {
  std::vector<Route> result;
  std::string line;
  std::getline(file, line);  // the headings
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string interface;
    std::uint32_t destination = 1, gateway = 0, flags = 0, references = 0, use = 0, metric = 0, mask = 1;
    fields >> interface >> std::hex >> destination >> gateway >> flags >> std::dec >> references >> use >> metric >>
        std::hex >> mask;
    if (fields && destination == 0 && mask == 0 && (flags & RTF_REJECT) == 0) result.push_back({interface, metric});
  }
  return result;
}

std::vector<Route> ipv6_default_routes(std::istream& file) {
  std::vector<Route> result;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string destination, source, next_hop, interface;
    std::uint32_t bits = 1, source_bits = 0, metric = 0, references = 0, use = 0, flags = 0;
    fields >> destination >> std::hex >> bits >> source >> source_bits >> next_hop >> metric >> references >> use >>
        flags >> interface;
    if (fields && bits == 0 && (flags & RTF_REJECT) == 0) result.push_back({interface, metric});
  }
  return result;
}

}  // namespace

std::set<std::string> default_route_interfaces(std::istream& ipv4, std::istream& ipv6) {
  std::set<std::string> names;
  add_best(ipv4_default_routes(ipv4), names);
  add_best(ipv6_default_routes(ipv6), names);
  return names;
}

std::set<std::string> passing_ipv6_addresses(std::istream& addresses) {
  constexpr std::uint32_t kPassing = IFA_F_TEMPORARY | IFA_F_DEPRECATED | IFA_F_TENTATIVE | IFA_F_DADFAILED;
  std::set<std::string> result;
  std::string line;
  while (std::getline(addresses, line)) {
    std::istringstream fields(line);
    std::string digits;
    std::uint32_t index = 0, bits = 0, scope = 0, flags = 0;
    fields >> digits >> std::hex >> index >> bits >> scope >> flags;
    constexpr std::size_t kDigits = 32, kGroup = 4;
    if (!fields || digits.size() != kDigits || (flags & kPassing) == 0) continue;
    for (std::size_t at = kDigits - kGroup; at > 0; at -= kGroup) digits.insert(at, ":");
    in6_addr address{};
    if (::inet_pton(AF_INET6, digits.c_str(), &address) == 1) result.insert(text_of(AF_INET6, &address));
  }
  return result;
}

NetworkFacts network_facts() {
  NetworkFacts facts;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return facts;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::ifstream ipv4_routes("/proc/net/route"), ipv6_routes("/proc/net/ipv6_route"), ipv6("/proc/net/if_inet6");
  const std::set<std::string> with_default_route = default_route_interfaces(ipv4_routes, ipv6_routes);
  const std::set<std::string> passing = passing_ipv6_addresses(ipv6);
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const auto address = address_of(*entry);
    if (!address || (entry->ifa_flags & IFF_UP) == 0 || passing.count(address->address) != 0) continue;
    NetworkInterface& interface = interface_called(facts, entry->ifa_name);
    if (interface.addresses.empty()) {
      interface.speed_mbits = speed_mbits(socket.get(), interface.name);
      interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
      interface.point_to_point = (entry->ifa_flags & IFF_POINTOPOINT) != 0;
      interface.carrier = (entry->ifa_flags & IFF_RUNNING) != 0;
      interface.default_route = with_default_route.count(interface.name) != 0;
    }
    interface.addresses.push_back(*address);
  }
  return facts;
}

bool is_own_address(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == IN_LOOPBACKNET) return true;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (const auto own = address_of(*entry); own && own->address == address) return true;
  }
  return false;
}

std::vector<std::string> reachable_addresses(const NetworkFacts& facts) {
  constexpr std::size_t kMost = 32;
  std::vector<std::string> first, others;
  for (const NetworkInterface& interface : facts.interfaces) {
    if (interface.loopback || !interface.carrier) continue;
    for (const InterfaceAddress& address : interface.addresses) {
      if (address.address.starts_with("fe80:")) continue;  // means nothing without its interface
      (interface.default_route ? first : others).push_back(address.address);
    }
  }
  first.insert(first.end(), others.begin(), others.end());
  if (first.empty()) first.push_back("127.0.0.1");
  if (first.size() > kMost) first.resize(kMost);
  return first;
}

}  // namespace runjob
