#pragma once

#include <algorithm>

namespace runjob::runtime {

/// Who sends what to whom when every one of `hosts` hosts has a block for all others: in step k a host sends what it has, its
/// own block and those of the hosts behind it, to the host 2^k before it. After all steps, the logarithm of the number of hosts,
/// everybody has all blocks, in the order of the hosts from its own on. The steps of a host have different sources. Pure.
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
  /// How many blocks go in a message of this step: the sender's first ones.
  int blocks(int step) const { return std::min(1 << step, hosts - (1 << step)); }
};

}  // namespace runjob::runtime
