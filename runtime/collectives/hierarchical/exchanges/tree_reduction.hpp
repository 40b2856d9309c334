#pragma once

#include <cstddef>
#include <span>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/topology.hpp"

namespace runjob::runtime {

/// Reduces `count` elements of all ranks' inputs, by rank, into `call.output`: the inputs of each host in the order of
/// its ranks, and then the hosts' sums in the order of recursive doubling. So the result has the bits of an allreduce
/// between hosts. For small messages only. The inputs need not be aligned.
/// Threads  any.
void tree_reduce(const Topology& topology, const Call& call, std::span<const void* const> inputs, std::size_t count);

}  // namespace runjob::runtime
