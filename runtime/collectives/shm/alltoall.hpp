#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Gives every rank of a group its part of each rank's input. Each rank copies the parts for others in and its own
/// parts out, large parts piece by piece at the same time.
/// Owner    the call's buffers are lent until it returns.
/// Cost     with equal parts each rank copies N(p-1)/p bytes in and as many out.
/// Errors   throws what Group and BufferExchange throw.
void alltoall(Channels& channels, const Call& call);

}  // namespace runjob::runtime
