#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Gives every rank of a host its part of each rank's buffer: each copies what is for others in and what is for it out, large
/// parts piece by piece at the same time.
/// Cost    N(p-1)/p bytes in and as many out on each rank, when all parts are alike.
/// Errors  throws what Group throws.
void alltoall(Channels& channels, const Call& call);

}  // namespace runjob::runtime
