#pragma once

#include <cstddef>

#include "runtime/collectives/instruction_set.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/collectives/reduce.hpp"

/// The reduction of float16 and bfloat16 through float32, in registers: one pass over memory. Pure.
namespace runjob::runtime {

/// out[i] = (inputs[0][i] op inputs[1][i] op ... inputs[ranks - 1][i]) * factor, rounded once. `out` may be one of the
/// inputs, and must not overlap them otherwise. kAverage reduces like kSum.
using HalfReduction = void (*)(void* out, const void* const* inputs, std::size_t ranks, std::size_t count,
                               float factor);

HalfReduction half_reduction(DType half, ReduceOp op, InstructionSet set = best_instruction_set());

/// The same for two inputs and no factor.
ReduceFunction half_pair_reduction(DType half, ReduceOp op, InstructionSet set = best_instruction_set());

}  // namespace runjob::runtime
