#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// The allreduce of large buffers without slots, for PeerBuffers::run(). Rank i reduces the i-th slice of all ranks' inputs, in the
/// order of the ranks: the bits are those of the ring.
///
/// kWrite: and writes it into all ranks' outputs. Cost  N read and N written on each rank, which is the least that there can be.
/// kRead: and the others copy it from its output. Cost  N read to reduce, 2N(p-1)/p copied on each rank.
/// Source  "reduce-scatter and allgather" of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
///         MPICH", IJHPCA 19 (2005), section 4.5, over mapped memory.
/// Errors  what PeerBuffers and Group throw.
void allreduce_directly(Channels& channels, const Call& call, PeerBuffers::Route route);

}  // namespace runjob::runtime
