#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/collectives/half.hpp"
#include "runtime/collectives/rank_order_reduction.hpp"

/// Reductions with random inputs, and their results.
namespace runjob::runtime {

using Bytes = std::vector<std::byte>;

inline constexpr ReduceOp kOps[] = {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                                    ReduceOp::kProduct};

/// Any bits at all for integers, for floats values whose products stay finite.
inline Bytes random_input(DType dtype, std::size_t count, int rank) {
  std::mt19937_64 random(static_cast<unsigned>(rank) + 1);
  Bytes bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    const float value = static_cast<float>(bits >> 40) * 0x1p-22F - 2;  // from -2 to 2
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

struct ReductionCase {
  DType dtype;
  ReduceOp op;
  std::size_t count;
  double prescale = 1, postscale = 1;
  bool in_place = false;
};

/// What rank_order_reduction_test.cc has compared with plain loops.
inline Bytes expected(const ReductionCase& c, int size) {
  std::vector<Bytes> inputs;
  std::vector<const void*> pointers;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(random_input(c.dtype, c.count, rank));
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  Bytes output(c.count * size_of(c.dtype));
  RankOrderReduction(c.dtype, c.op, c.prescale, c.postscale, size).run(output.data(), pointers, c.count);
  return output;
}

}  // namespace runjob::runtime
