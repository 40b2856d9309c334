#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "launcher/channel/host_address.hpp"
#include "launcher/network/candidates.hpp"
#include "launcher/network/probe_outcome.hpp"

/// Chooses the address of each host of a job from the agents' probes. Pure functions.
///
/// Every host tries all candidates of the next host (the last host those of the first one), and of the first host,
/// where the ranks meet. These attempts suffice: hosts of one network reach each other if each reaches the next one,
/// and if there are routes between networks, a route to the first host's network leads to the others.
namespace runjob {

/// The id of one probe: a connection of one host to a candidate of another.
struct ProbeId {
  int from = 0;
  int to = 0;
  int candidate = 0;  ///< index in HostNetwork::candidates of `to`

  bool operator<(const ProbeId& other) const {
    return std::tie(from, to, candidate) < std::tie(other.from, other.to, other.candidate);
  }
};

/// The outcomes so far.
using ProbeOutcomes = std::map<ProbeId, ProbeOutcome>;

/// The indexes, among `hosts` hosts, of the hosts whose candidates `from` tries.
std::vector<int> probe_targets(int from, int hosts);

/// The address of each host, all of one family. Preferred, in this order: loopback, if all hosts are one; networks of
/// the hosts over those of containers and tunnels; the fastest; one network for all; IPv4; the default route's. A
/// single host needs no outcomes.
/// Errors  Error(kConnect) in one line: which host does not reach which, the tried addresses, and the remedy.
std::vector<HostAddress> choose_addresses(const std::vector<HostNetwork>& hosts, const ProbeOutcomes& outcomes);

}  // namespace runjob
