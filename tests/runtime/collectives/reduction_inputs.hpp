#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/collectives/half.hpp"
#include "runtime/collectives/rank_order_reduction.hpp"

/// Inputs of reductions in any dtype, and their results.
namespace runjob::runtime {

using Bytes = std::vector<std::byte>;

/// What `rank` gives: any bits at all for integers, for floats `value_of` 64 random bits.
template <class ValueOf>
Bytes make_input(DType dtype, std::size_t count, int rank, ValueOf value_of) {
  std::mt19937_64 random(static_cast<unsigned>(rank) + 1);
  Bytes bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    const float value = value_of(bits);
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

/// What rank_order_reduction_test.cc has compared with plain loops. `inputs`: by rank.
inline Bytes reduce_inputs(const std::vector<Bytes>& inputs, DType dtype, ReduceOp op, double prescale,
                           double postscale) {
  std::vector<const void*> pointers;
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  Bytes output(inputs[0].size());
  RankOrderReduction(dtype, op, prescale, postscale, static_cast<int>(inputs.size()))
      .run(output.data(), pointers, output.size() / size_of(dtype));
  return output;
}

}  // namespace runjob::runtime
