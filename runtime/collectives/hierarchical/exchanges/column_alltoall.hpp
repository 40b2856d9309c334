#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// An alltoall in which each rank sends and receives for its own column. A rank writes its bytes for a rank of another
/// host into shared memory, for the rank of its own host with the same local rank as the receiver. That rank sends them
/// on, and the receiver gets them in its output. Pieces for several hosts are on their way at the same time, while the
/// next ones are written.
/// Needs    Topology::columns_reach_all().
/// Owner    all is lent. The call's buffers may be used again when this has returned.
/// Threads  one at a time; blocks until this rank has all of its output, and has sent on the bytes of its column.
/// Errors   the transport's status, thrown as Error; those of Group.
/// Cost     each byte for another host once over the wire and copied once within the sender's host; a byte for a rank
///          of the same host is copied twice.
void column_alltoall(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
