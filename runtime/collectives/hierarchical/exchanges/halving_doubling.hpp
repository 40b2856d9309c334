#pragma once

#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_reduction.hpp"

namespace runjob::runtime {

/// Adds `count` elements in `reduction.wide()` among the leaders of all hosts, with the bits of cube_allreduce(),
/// because it goes along the same edges in the same order. Recursive halving leaves each host of a Cube a part of the
/// result; recursive doubling gives it the rest. Blocks.
///
/// `sum`    this rank's elements, and then the result
/// `room`   memory for as many bytes again, with undefined contents
/// Threads  one at a time.
/// Errors   throws the transport's status as Error; `sum` then has any contents.
/// Cost     2 log2(h) steps, 2(h-1)/h N bytes each way; two steps and 2N more for hosts beyond the cube.
/// Source   Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
void halve_and_double(HostChannels& channels, void* sum, void* room, std::size_t count, const HostReduction& reduction);

}  // namespace runjob::runtime
