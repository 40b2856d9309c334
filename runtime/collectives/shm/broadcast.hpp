#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Gives every rank of a host the root's buffer: the root copies it in, the others copy it out, large ones piece by piece at
/// the same time.
/// Cost    N bytes in, N out on each other rank.
/// Errors  throws what Group throws.
void broadcast(Channels& channels, const Call& call);

}  // namespace runjob::runtime
