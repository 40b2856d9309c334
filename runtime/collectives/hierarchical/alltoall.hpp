#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Gives every rank its part of each rank's buffer. Where Topology::columns_reach_all(), it is a column_alltoall().
/// With one rank on each host, every rank sends to every other one at once. Otherwise the bytes that the ranks of one
/// host send to those of another one are a stream of messages between the two leaders. Each host sends to the next one
/// first, then to the one after that.
/// Cost    each host's bytes for other hosts once out, theirs once in. Through leaders, each byte is copied three times
///         within a host.
void alltoall(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
