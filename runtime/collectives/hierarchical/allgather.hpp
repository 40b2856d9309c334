#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Gives every rank of all hosts the inputs of all, in the order of the ranks; parts may differ and be empty. Short: to the
/// leader, among the leaders in as many steps as the logarithm of the hosts, and to the others. Long: what the ranks of one
/// host have goes round the ring of hosts, in columns, each host's ranks copying what has come.
/// Cost    long, what all the other hosts have, in and out once on each host's wire.
void allgather(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
