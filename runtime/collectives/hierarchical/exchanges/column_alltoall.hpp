#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// An alltoall in which each rank sends and receives for its own column: the ranks of a host write what they have for a rank of
/// another host into the shared memory of the rank with the same local rank here, which sends it on to that rank, and that
/// receives it in its output. Pieces for several hosts are on their way at the same time, while the next ones are
/// written.
/// Needs   Topology::columns_reach_all().
/// Cost    each byte for another host once over the wire and copied once within the sender's host; a byte for a rank of
///         the same host is copied twice.
void column_alltoall(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
