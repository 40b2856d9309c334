#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "launcher/network/candidates.hpp"
#include "launcher/network/host_address.hpp"
#include "launcher/network/probe_outcome.hpp"

/// Which address each host of a job gets, from what its agents have tried. Pure functions.
///
/// Every host tries all candidates of the next one (the last one those of the first), and of the first, where the ranks meet. These are at
/// most two hosts for each, and they are enough: addresses in one network whose ring is closed reach each other, and where
/// there are routes between networks, one that leads to the first host's leads on.
namespace runjob {

/// A connection that one host tries: to a candidate of another.
struct ProbeId {
  int from = 0;
  int to = 0;
  int candidate = 0;  ///< index in HostNetwork::candidates of `to`

  bool operator<(const ProbeId& other) const {
    return std::tie(from, to, candidate) < std::tie(other.from, other.to, other.candidate);
  }
};

/// What has been tried so far.
using ProbeOutcomes = std::map<ProbeId, ProbeOutcome>;

/// The hosts, out of `hosts`, whose candidates `from` tries.
std::vector<int> probe_targets(int from, int hosts);

/// For each host its address, all of one family. Preferred, in this order: loopback, when all hosts turn out to be one;
/// networks of their own over containers' and tunnels; the fastest; one network for all; IPv4; the default route's.
/// A single host needs no outcomes.
/// Errors  Error(kConnect) in one line: which host does not reach which, what was tried, what to do.
std::vector<HostAddress> choose_addresses(const std::vector<HostNetwork>& hosts, const ProbeOutcomes& outcomes);

}  // namespace runjob
