#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "runtime/collectives/half.hpp"
#include "runtime/collectives/rank_order_reduction.hpp"

/// Inputs of reductions whose results do not depend on the order of the additions, in any dtype.
namespace runjob::runtime {

using Bytes = std::vector<std::byte>;

/// Any bits at all for integers; floats whose sums and products over 16 ranks have few enough bits for bfloat16.
inline Bytes exact_input(DType dtype, std::size_t count, int rank) {
  constexpr float kValues[] = {-2, -1, 1, 2};
  std::mt19937_64 random(static_cast<unsigned>(rank) + 1);
  Bytes bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    const float value = kValues[bits >> 62];
    const double wide = value;
    const std::uint16_t half = dtype == DType::kFloat16 ? float_to_float16(value) : float_to_bfloat16(value);
    const bool is_half = dtype == DType::kFloat16 || dtype == DType::kBfloat16;
    const void* source = dtype == DType::kFloat32   ? static_cast<const void*>(&value)
                         : dtype == DType::kFloat64 ? static_cast<const void*>(&wide)
                         : is_half                  ? static_cast<const void*>(&half)
                                                    : &bits;
    std::memcpy(&bytes[i * size_of(dtype)], source, size_of(dtype));
  }
  return bytes;
}

/// What rank_order_reduction_test.cc has compared with plain loops.
inline Bytes reduced(const Call& call, int size) {
  std::vector<Bytes> inputs;
  std::vector<const void*> pointers;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(exact_input(call.dtype, call.count, rank));
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  Bytes output(call.count * size_of(call.dtype));
  RankOrderReduction(call.dtype, call.op, call.prescale, call.postscale, size).run(output.data(), pointers, call.count);
  return output;
}

/// Every dtype with every reduction that it has.
inline std::vector<Call> all_reductions(const std::vector<std::size_t>& counts) {
  std::vector<Call> calls;
  for (int number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    for (const ReduceOp op : {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      if (dtype == DType::kBool && op == ReduceOp::kAverage) continue;
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
