#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace runjob::runtime {

/// The vector instructions that a function uses. Every set computes the same values.
enum class InstructionSet : std::uint8_t {
  kPlain,   ///< the instructions that every processor of the architecture has
  kAvx2,    ///< AVX2 and F16C
  kAvx512,  ///< AVX-512 F, BW, DQ and VL
};

std::string_view to_string(InstructionSet set);  ///< "AVX2"

/// The sets that this processor supports, from kPlain up; never empty.
std::span<const InstructionSet> instruction_sets();

/// The last one of instruction_sets().
InstructionSet best_instruction_set();

}  // namespace runjob::runtime
