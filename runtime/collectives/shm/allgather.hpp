#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Gives every rank of a host the inputs of all, in the order of the ranks. Parts may differ and be empty; all ranks stream
/// theirs at the same time.
/// Cost    for each rank: its own bytes in, everybody's out.
/// Errors  throws what Group throws.
void allgather(Channels& channels, const Call& call);

}  // namespace runjob::runtime
