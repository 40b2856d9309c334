#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Reduces the ranks' inputs and gives each rank of a group its part of the result. Each rank copies in the parts that
/// the others reduce, large parts piece by piece at the same time. The order of the sum is that of the ranks, so that
/// the result has the same bits in every run.
/// Owner    the call's buffers are lent until it returns.
/// Cost     each rank copies N(p-1)/p bytes in, reads as many, and writes N/p.
/// Errors   throws what Group and BufferExchange throw.
void reducescatter(Channels& channels, const Call& call);

}  // namespace runjob::runtime
