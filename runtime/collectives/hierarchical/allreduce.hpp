#pragma once

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Reduces over the ranks of all hosts, with the scaling that runjob.h describes. All ranks get the same bits, also on
/// each repetition. No rank's output changes before all ranks have given their part of the input. choose_allreduce()
/// chooses the algorithm:
///   kDoubling  each rank gives its tensor to the host's leader in shared memory, the leaders exchange their sums by
///              recursive doubling (cube_exchange.hpp), and give the result back;
///   kHalving   the same with long messages, by recursive halving and doubling (halving_doubling.hpp);
///   kExchange  exchange_reduce() of direct_exchange.hpp;
///   kRing      ring_reduction.hpp.
/// float16, bfloat16  rounded once at the end; by kRing once on each host.
void allreduce(HostChannels& channels, const Call& call);

/// The same with one of the algorithms. kDoubling: at most channels.most_short() bytes.
void allreduce(HostChannels& channels, const Call& call, AllreduceWay way);

/// Reduces every rank's buffer and leaves each rank its part. A small buffer is allreduced, and each rank keeps its
/// part of the result.
void reducescatter(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
