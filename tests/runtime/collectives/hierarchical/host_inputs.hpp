#pragma once

#include <set>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "tests/runtime/collectives/reduction_inputs.hpp"

/// Inputs of reductions whose results do not depend on the order of the additions, in any dtype.
namespace runjob::runtime {

/// Any bits at all for integers; floats whose sums and products over 16 ranks have few enough bits for bfloat16.
inline Bytes exact_input(DType dtype, std::size_t count, int rank) {
  constexpr float kValues[] = {-2, -1, 1, 2};
  return make_input(dtype, count, rank, [&](std::uint64_t bits) { return kValues[bits >> 62]; });
}

inline Bytes reduced(const Call& call, int size) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(exact_input(call.dtype, call.count, rank));
  return reduce_inputs(inputs, call.dtype, call.op, call.prescale, call.postscale);
}

/// One dtype of each size with every reduction, and each other dtype once. The tests of reduce.hpp and of shared memory
/// combine all dtypes with all reductions: the code between hosts distinguishes only their sizes, and the dtype in
/// which it adds.
inline std::vector<Call> reductions(const std::vector<std::size_t>& counts) {
  const std::set<DType> crossed{DType::kUint8, DType::kBfloat16, DType::kFloat32, DType::kInt64};
  std::vector<Call> calls;
  for (int number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (!crossed.count(dtype)) {
      calls.push_back({.kind = Kind::kAllreduce, .dtype = dtype, .op = ReduceOp::kSum, .count = counts.back()});
      continue;
    }
    for (const ReduceOp op : {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      for (const std::size_t count : counts)
        calls.push_back({.kind = Kind::kAllreduce, .dtype = dtype, .op = op, .count = count});
    }
  }
  return calls;
}

/// Hosts of one rank each, hosts alike, uneven ones, and ranks that take turns.
inline std::vector<std::vector<int>> topologies() {
  return {{0, 1},
          {0, 1, 2},
          {0, 0, 1, 1},
          {0, 0, 0, 1},
          {0, 1, 0, 1, 0},
          {0, 0, 1, 1, 2, 2},
          {0, 1, 1, 2, 2, 2, 3},
          {0, 1, 2, 3, 4},
          {0, 0, 1, 1, 2, 2, 3, 3}};
}

}  // namespace runjob::runtime
