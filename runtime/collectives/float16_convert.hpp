#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/collectives/instruction_set.hpp"

/// Conversions of whole buffers between float16, as bits, and float32. They use the processor's own instructions if it
/// has them. Pure. A NaN stays a NaN; its other bits depend on the instruction set.
namespace runjob::runtime {

using Float16ToFloats = void (*)(float* out, const std::uint16_t* in, std::size_t count);
using FloatsToFloat16 = void (*)(std::uint16_t* out, const float* in, std::size_t count);

Float16ToFloats float16_to_floats(InstructionSet set);
FloatsToFloat16 floats_to_float16(InstructionSet set);

}  // namespace runjob::runtime
