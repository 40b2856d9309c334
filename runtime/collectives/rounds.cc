#include "runtime/collectives/rounds.hpp"

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/rank_order_reduction.hpp"

namespace runjob::runtime {

void Rounds::reduce(const Call& call, std::span<const void* const> inputs, std::size_t count) const {
  RankOrderReduction(call.dtype, call.op, call.prescale, call.postscale, static_cast<int>(inputs.size()))
      .run(call.output, inputs, count);
}

}  // namespace runjob::runtime
