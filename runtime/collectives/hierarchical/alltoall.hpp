#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Gives every rank its part of each rank's buffer. What the ranks of one host have for those of another goes as one stream of
/// messages between the two leaders; each host sends to the next one first, then to the one after that. Ranks of one host
/// tell each other their counts before.
/// Cost    each host's bytes for other hosts out once, theirs in once; within a host each byte is copied three times.
void alltoall(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
