#pragma once

#include <string>
#include <vector>

#include "launcher/channel/network_facts.hpp"
#include "launcher/network/interface_filter.hpp"

namespace runjob {

/// An address of a host by which the others may be able to reach it.
struct Candidate {
  /// The kinds in order of preference, which comes before speed. Only a test shows whether an address works.
  enum class Kind {
    kLoopback,  ///< works only if all hosts are the same machine, and is then the best
    kNetwork,
    kPrivate,  ///< bridges of containers and virtual machines, which exist on each host separately, and tunnels
  };
  Kind kind = Kind::kNetwork;
  std::string interface;
  std::string address;
  std::string network;  ///< in ip_network.hpp's spelling; hosts that share it need no route
  bool ipv6 = false;
  int speed_mbits = 0;  ///< 0 if unknown
  bool default_route = false;
  bool named = false;  ///< true if --network-interface names it

  bool operator==(const Candidate&) const = default;
};

/// One host of a job, with its possible addresses.
struct HostNetwork {
  std::string host;  ///< as the user spells it
  NetworkFacts facts;
  std::vector<Candidate> candidates;
};

/// The candidates of a host, best first: by kind, speed, IPv4 before IPv6, the default route's interface, the kernel's
/// order. An address that `filter` names is never kPrivate. Loopback, link-local addresses and interfaces without a
/// carrier are left out unless named. At most 16. Pure.
std::vector<Candidate> candidates(const NetworkFacts& facts, const InterfaceFilter& filter);

/// Throws Error(kUsage) when a host has no candidate. The message names the host, its addresses and the filter.
void check_candidates(const std::vector<HostNetwork>& hosts, const InterfaceFilter& filter);

}  // namespace runjob
