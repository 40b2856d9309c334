#pragma once

#include <vector>

#include "tests/runtime/collectives/reduction_inputs.hpp"

/// Reductions with random inputs, and their results.
namespace runjob::runtime {

inline constexpr ReduceOp kOps[] = {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                                    ReduceOp::kProduct};

/// Any bits at all for integers, for floats values whose products stay finite.
inline Bytes random_input(DType dtype, std::size_t count, int rank) {
  const auto value_of = [](std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-22F - 2; };  // -2 to 2
  return make_input(dtype, count, rank, value_of);
}

struct ReductionCase {
  DType dtype;
  ReduceOp op;
  std::size_t count;
  double prescale = 1, postscale = 1;
  bool in_place = false;
};

inline Bytes expected(const ReductionCase& c, int size) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(random_input(c.dtype, c.count, rank));
  return reduce_inputs(inputs, c.dtype, c.op, c.prescale, c.postscale);
}

}  // namespace runjob::runtime
