#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Gives every rank of all hosts the root's buffer. Short: through shared memory to the leader, down a binomial tree of the
/// leaders, through shared memory to the others. Long: each column's part of each segment goes from host to host in a chain
/// that begins at the root's, while the segments in front of it go further and the host's other ranks copy them.
/// Cost    long, N bytes in and out on each host's wire.
void broadcast(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
