#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"

namespace runjob::runtime {

/// Gives every rank of a group the root's buffer. The root copies it in and the others copy it out, large buffers piece
/// by piece at the same time.
/// Owner    the call's buffer is lent until it returns.
/// Cost     the root copies N bytes in, each other rank N bytes out.
/// Errors   throws what Group and BufferExchange throw.
void broadcast(Channels& channels, const Call& call);

}  // namespace runjob::runtime
