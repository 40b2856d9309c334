#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// The allreduce of large buffers without ring cells, for LargeMessage::run(). Rank i reduces slice i of all ranks'
/// inputs in the order of the ranks: the bits are the same as through the ring.
///
/// kSymmetric  rank i also writes the result into all ranks' outputs.
///             Cost  each rank reads N bytes and writes N bytes, which is the least possible.
/// kCma        the others copy the result from its output.
///             Cost  each rank reads N bytes to reduce them, and copies 2N(p-1)/p.
/// Owner   the call's buffers are lent until run() returns on all ranks.
/// Source  "reduce-scatter and allgather" of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
///         Operations in MPICH", IJHPCA 19 (2005), section 4.5, over mapped memory.
/// Errors  throws what BufferExchange and Group throw.
void allreduce_directly(Channels& channels, const Call& call, Path path);

}  // namespace runjob::runtime
