#pragma once

#include <string>
#include <vector>

#include "launcher/network/interface_filter.hpp"
#include "launcher/network/network_facts.hpp"

namespace runjob {

/// An address of a host by which the others may perhaps reach it.
struct Candidate {
  /// Which kinds are better than others, however fast. Only a test shows which works.
  enum class Kind {
    kLoopback,  ///< works only when all hosts are one, and is then the best
    kNetwork,
    kPrivate,  ///< bridges of containers and virtual machines, which every host has for itself, and tunnels
  };
  Kind kind = Kind::kNetwork;
  std::string interface;
  std::string address;
  std::string network;  ///< ip_network.hpp's spelling; hosts that share it need no route
  bool ipv6 = false;
  int speed_mbits = 0;  ///< 0 when unknown
  bool default_route = false;
  bool named = false;  ///< --network-interface names it

  bool operator==(const Candidate&) const = default;
};

/// One host of a job, and what may be its address.
struct HostNetwork {
  std::string host;  ///< as the user calls it
  NetworkFacts facts;
  std::vector<Candidate> candidates;
};

/// The best first: by kind, speed, IPv4 before IPv6, the default route's interface, the kernel's order. What `filter` names
/// is never kPrivate. Loopback, link-local addresses and interfaces without a carrier are left out unless named. At most 16. Pure.
std::vector<Candidate> candidates(const NetworkFacts& facts, const InterfaceFilter& filter);

/// Throws Error(kUsage) when a host has no candidate, naming the host, what it has and the filter.
void check_candidates(const std::vector<HostNetwork>& hosts, const InterfaceFilter& filter);

}  // namespace runjob
