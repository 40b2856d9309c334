#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Reduces over the ranks of a host, with everything that runjob.h says of scaling and rounding, in the order of the ranks:
/// the same bits on every rank, and again on each repetition.
///
/// Small  every rank gives its input to all, and each reduces all of them: one step.
/// Large  pieces in a pipeline. Of each piece a rank copies in what others reduce, reduces its own part out of the others'
///        slots and its own memory, and copies out what others have reduced. It contributes piece i + 1 before it reduces
///        piece i, and collects piece i - 1 after that, so that it seldom waits.
/// Cost   large, of N bytes, p ranks, for each: N(p-1)/p in, N + N/p reduced, N out; while pieces stay in the cache,
///        memory itself sees only N read and N written.
/// Source Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69 (2009), for the two halves; Jain et al.,
///        "Framework for Scalable Intra-Node Collective Operations using Shared Memory", SC 2018, for flags instead of barriers.
/// Errors throws what Group throws; then the output holds anything.
void allreduce(Channels& channels, const Call& call);

}  // namespace runjob::runtime
