#pragma once

#include <algorithm>

namespace runjob::runtime {

/// The order of messages when each of `hosts` hosts has a block for all others. In step k a host sends its own block
/// and those of the hosts behind it, as far as it has them, to the host 2^k before it. After all steps, as many as the
/// logarithm of the number of hosts, each host has all blocks, in the order of the hosts from its own on. The steps of
/// a host have different sources. Pure.
/// Source  Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems",
///         IEEE TPDS 8 (1997), section 3.
struct Dissemination {
  int host, hosts;

  int steps() const {
    int count = 0;
    while ((1 << count) < hosts) ++count;
    return count;
  }
  int target(int step) const { return (host + hosts - (1 << step)) % hosts; }
  int source(int step) const { return (host + (1 << step)) % hosts; }
  /// The number of blocks in a message of this step: the sender's first ones.
  int blocks(int step) const { return std::min(1 << step, hosts - (1 << step)); }
};

}  // namespace runjob::runtime
