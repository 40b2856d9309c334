#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Reduces every rank's buffer and leaves each rank of a host its part: each copies in what the others reduce, large parts piece
/// by piece at the same time. In the order of the ranks, so the result has the same bits every time.
/// Cost    N(p-1)/p bytes in and read, N/p written on each rank.
/// Errors  throws what Group throws.
void reducescatter(Channels& channels, const Call& call);

}  // namespace runjob::runtime
