#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// An allgather in which each rank sends its input to the other ranks of its column, straight into their outputs, and
/// shares with the ranks of its own host what it has and what comes. Pieces for and from all hosts are on their way at
/// the same time, while those that have come are shared.
/// Needs    Topology::columns_reach_all().
/// Owner    all is lent. The call's buffers may be used again when this has returned.
/// Threads  one at a time; blocks until this rank has all of its output, and has sent its input.
/// Errors   the transport's status, thrown as Error; those of Group.
/// Cost     each byte once over the wire to each other host. On a host, one rank copies each byte of the output into
///          shared memory, and each other one copies it out.
void column_allgather(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
