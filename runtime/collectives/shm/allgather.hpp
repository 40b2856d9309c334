#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Gives every rank of a group the inputs of all ranks, in the order of the ranks. Parts may differ in size and be
/// empty. All ranks stream theirs at the same time.
/// Owner    the call's buffers are lent until it returns.
/// Cost     each rank copies its own bytes into shared memory and all ranks' bytes out of it.
/// Errors   throws what Group and BufferExchange throw.
void allgather(Channels& channels, const Call& call);

}  // namespace runjob::runtime
