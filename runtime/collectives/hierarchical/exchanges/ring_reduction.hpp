#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// A large allreduce round the ring of hosts. Every rank puts its input into shared memory. The rank of each column
/// adds its host's inputs to the sums that its left neighbour has sent, and sends the result on. Complete sums go round
/// once more, and through shared memory to the other ranks. The order of the additions depends on the place in the
/// tensor, but is the same every time, and one host makes each sum, so all ranks have the same bits.
///
/// float16, bfloat16  rounded once on each host.
/// Cost    2(h-1)/h N bytes each way on the wire of each host; within it, as shm/allreduce.hpp.
void ring_allreduce(HostChannels& channels, const Call& call);

/// The first half of ring_allreduce(). Its chunks are the parts of the result that the ranks of one host get.
void ring_reducescatter(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
