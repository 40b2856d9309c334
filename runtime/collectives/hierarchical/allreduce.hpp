#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Reduces over the ranks of all hosts, with everything that runjob.h says of scaling; the same bits on every rank, and again on
/// each repetition. No rank's output changes before all ranks have given their part of the input. choose_allreduce() says which
/// way it goes:
///   kDoubling  each rank gives its tensor to the host's leader in shared memory, the leaders exchange their sums by
///              recursive doubling (cube_exchange.hpp), and give the result back;
///   kHalving   the same with long messages, by recursive halving and doubling (halving_doubling.hpp);
///   kRing      ring_reduction.hpp.
/// float16, bfloat16  rounded once at the end, but for kRing, where each host rounds once.
void allreduce(HostChannels& channels, const Call& call);

/// One of the ways. kDoubling: at most channels.most_short() bytes.
void allreduce(HostChannels& channels, const Call& call, AllreduceWay way);

/// Reduces every rank's buffer and leaves each rank its part. Small ones are an allreduce of which each rank keeps its part.
void reducescatter(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
