#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Gives every rank its part of each rank's buffer. Where Topology::columns_reach_all(), it is a column_alltoall(), and with one
/// rank on each host, every rank sends to every other one at once. Otherwise what the ranks of one host have for those of
/// another goes as one stream of messages between the two leaders; each host sends to the next one first, then to the one
/// after that.
/// Cost    each host's bytes for other hosts out once, theirs in once; through leaders, each byte is copied three times
///         within a host.
void alltoall(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
