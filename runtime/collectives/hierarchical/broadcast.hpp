#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Gives every rank of all hosts the root's buffer. A short one goes through shared memory to the leader, down a
/// binomial tree of the leaders, and through shared memory to the other ranks. A long one is cut into segments. Each
/// column's part of a segment goes from host to host in a chain that begins at the root's host. Meanwhile the segments
/// in front of it go on, and the host's other ranks copy them.
/// Owner    the call's buffer is lent until it returns.
/// Threads  one at a time; blocks until this rank has the buffer and has passed it on.
/// Errors   throws the errors of Group and Transport.
/// Cost     long: N bytes in and out on each host's wire.
void broadcast(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
