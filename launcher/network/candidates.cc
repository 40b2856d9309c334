#include "launcher/network/candidates.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "launcher/network/ip_network.hpp"

namespace runjob {
namespace {

constexpr std::size_t kMostCandidates = 16;

/// The names of the interfaces of Docker, Podman, libvirt, LXC, Kubernetes' network plugins and VPNs.
constexpr std::array<std::string_view, 19> kPrivateNames = {
    "docker",  "br-",  "podman", "virbr", "vnet", "vmnet", "veth", "lxc",       "lxd", "cni",
    "flannel", "cali", "kube",   "weave", "tun",  "tap",   "wg",   "tailscale", "zt"};

bool is_private(const NetworkInterface& interface) {
  const auto begins_name = [&interface](std::string_view start) { return interface.name.starts_with(start); };
  return interface.point_to_point || std::any_of(kPrivateNames.begin(), kPrivateNames.end(), begins_name);
}

Candidate::Kind kind_of(const NetworkInterface& interface, const InterfaceAddress& address, bool named) {
  if (is_loopback_address(address.address)) return Candidate::Kind::kLoopback;
  return !named && is_private(interface) ? Candidate::Kind::kPrivate : Candidate::Kind::kNetwork;
}

/// The two loopback addresses that every host has stand for all 16 million.
bool is_usable(const NetworkInterface& interface, const InterfaceAddress& address, bool named) {
  if (is_link_local_address(address.address)) return named && !is_ipv6_address(address.address);
  if (named) return true;
  if (is_loopback_address(address.address)) return address.address == "127.0.0.1" || address.address == "::1";
  return interface.carrier;
}

auto rank_of(const Candidate& c) {
  return std::tuple(c.kind, -c.speed_mbits, c.ipv6, !c.default_route);
}

std::string described(const NetworkFacts& facts) {
  std::vector<std::string> texts;
  for (const NetworkInterface& interface : facts.interfaces) {
    for (const InterfaceAddress& address : interface.addresses) {
      if (is_link_local_address(address.address) && is_ipv6_address(address.address)) continue;
      texts.push_back(
          fmt::format("{} {}{}", interface.name, address.address, interface.carrier ? "" : " (no carrier)"));
    }
  }
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::vector<Candidate> candidates(const NetworkFacts& facts, const InterfaceFilter& filter) {
  std::vector<Candidate> result;
  for (const NetworkInterface& interface : facts.interfaces) {
    for (const InterfaceAddress& address : interface.addresses) {
      const auto network = network_of(address.address, address.prefix_length);
      if (!network || !allows(filter, facts, interface, address)) continue;
      const bool named = names(filter, facts, interface, address);
      if (!is_usable(interface, address, named)) continue;
      result.push_back({kind_of(interface, address, named), interface.name, address.address, *network,
                        is_ipv6_address(address.address), interface.speed_mbits, interface.default_route, named});
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Candidate& a, const Candidate& b) { return rank_of(a) < rank_of(b); });
  if (result.size() > kMostCandidates) result.resize(kMostCandidates);
  return result;
}

void check_candidates(const std::vector<HostNetwork>& hosts, const InterfaceFilter& filter) {
  for (const HostNetwork& host : hosts) {
    if (!host.candidates.empty()) continue;
    const std::string problem = filter.text.empty()
                                    ? "has no address that other hosts could reach"
                                    : fmt::format("has no address that --network-interface {} allows", filter.text);
    throw Error(Errc::kUsage, fmt::format("{} {}; its addresses: {}", host.host, problem, described(host.facts)));
  }
}

}  // namespace runjob
