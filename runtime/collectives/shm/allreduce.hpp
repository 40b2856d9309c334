#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Reduces over the ranks of a group in the order of the ranks, so that the result has the same bits on every rank and
/// in every run. Scaling and rounding are as runjob.h describes them.
///
/// Small    every rank gives its input to all ranks, and each rank reduces all inputs: one step.
/// Large    pieces in a pipeline. Of each piece a rank copies in the part that others reduce, reduces its own part out
///          of the others' ring cells and its own memory, and copies out the parts that others have reduced. It
///          contributes piece i + 1 before it reduces piece i, and collects piece i - 1 after that, so that it seldom
///          waits.
/// Owner    the call's buffers are lent until it returns.
/// Cost     large, of N bytes, p ranks, for each rank: N(p-1)/p copied in, N + N/p reduced, N copied out. While pieces
///          stay in the cache, N bytes of main memory are read and N are written.
/// Source   Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69 (2009), for the two halves; Jain et
///          al., "Framework for Scalable Intra-Node Collective Operations using Shared Memory", SC 2018, for flags in
///          place of barriers.
/// Errors   throws what Group and BufferExchange throw; the contents of the output are then undefined.
void allreduce(Channels& channels, const Call& call);

}  // namespace runjob::runtime
