#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Gives every rank of all hosts the inputs of all ranks, in the order of the ranks. Parts may differ and be empty.
/// Short parts go to the leader, among the leaders in as many steps as the logarithm of the number of hosts, and to the
/// other ranks. Long parts go from each rank straight to its column on the other hosts (column_allgather.hpp); where
/// not all columns reach all hosts, they go round the ring of hosts, while each host's ranks copy those that have come.
/// Cost    long: the bytes of all other hosts, once in and once out on each host's wire.
void allgather(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
