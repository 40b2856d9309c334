#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/collectives/instruction_set.hpp"
#include "runtime/collectives/operation.hpp"

/// Element-wise arithmetic for every dtype: pure functions over dense buffers. Integers wrap, as in MPI. bool reads any
/// non-zero byte as true and writes 0 or 1. A NaN in either operand of min or max is the result, so that the outcome
/// does not depend on the order of the ranks.
namespace runjob::runtime {

/// out[i] = a[i] op b[i]; `out` may be `a` or `b`.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);

/// kAverage reduces like kSum. float16 and bfloat16 are rounded once per call: callers that reduce more than two values
/// use widen() and narrow() around float32.
ReduceFunction reduce_function(DType dtype, ReduceOp op, InstructionSet set = best_instruction_set());

/// Scales as Horovod does. Floats: out[i] = in[i] * (multiplier / divisor); the factor is computed in double and
/// rounded to float32, or stays float64 for float64. 16-bit floats are scaled as float32. Integers: out[i] = in[i] *
/// multiplier / divisor in double, truncated toward zero and limited to the type's range (a NaN becomes 0). `out` may
/// be `in`. Not for bool.
void scale(DType dtype, void* out, const void* in, std::size_t count, double multiplier, double divisor,
           InstructionSet set = best_instruction_set());

/// True if a multiplication by `factor` only changes a float's exponent, so that it is exact in any precision.
bool is_power_of_two(double factor);

/// Conversions of float16 or bfloat16 to float32 and back.
void widen(DType half, float* out, const void* in, std::size_t count, InstructionSet set = best_instruction_set());
void narrow(DType half, void* out, const float* in, std::size_t count, InstructionSet set = best_instruction_set());

/// Conversions of integers of 8 or 16 bits to int32 and back, where they are limited to the type's range.
void widen(DType integer, std::int32_t* out, const void* in, std::size_t count,
           InstructionSet set = best_instruction_set());
void narrow(DType integer, void* out, const std::int32_t* in, std::size_t count,
            InstructionSet set = best_instruction_set());

/// sum_dtype() of a reduction. Only sums and averages add.
constexpr DType sum_dtype(DType dtype, ReduceOp op, double postscale) {
  return sum_dtype(dtype, op == ReduceOp::kAverage || (op == ReduceOp::kSum && postscale != 1));
}
/// Conversions to sum_dtype(), `wide`, and back. Copies where that is the dtype itself.
void to_sum(DType wide, void* out, DType dtype, const void* in, std::size_t count);
void from_sum(DType dtype, void* out, DType wide, const void* in, std::size_t count);

}  // namespace runjob::runtime
