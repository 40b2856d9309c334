#pragma once

#include <cstddef>

#include "runtime/collectives/instruction_set.hpp"
#include "runtime/collectives/operation.hpp"

/// Copies tensors into the buffer in which they travel, and out of it, each in one pass over memory. Pure.
namespace runjob::runtime {

/// out[i] = in[i] * factor, converted from `from` to `to`. One of the two, or both, is a dtype in which the other
/// travels, see wire_dtype(). If they are equal, it is a copy, and `factor` must be 1. float64 is rounded to float32 on
/// its way to 16 bits. The buffers do not overlap.
void convert(DType to, void* out, DType from, const void* in, std::size_t count, double factor,
             InstructionSet set = best_instruction_set());

}  // namespace runjob::runtime
