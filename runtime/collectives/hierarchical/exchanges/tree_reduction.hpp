#pragma once

#include <cstddef>
#include <span>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/topology.hpp"

namespace runjob::runtime {

/// Reduces `count` elements of all ranks' inputs, by rank, into `call.output`: each host's in the order of its ranks, and then host
/// with host as recursive doubling does it, so that the result has the bits of an allreduce between hosts. Small messages only.
/// The inputs need not be aligned. Threads  any.
void tree_reduce(const Topology& topology, const Call& call, std::span<const void* const> inputs, std::size_t count);

}  // namespace runjob::runtime
