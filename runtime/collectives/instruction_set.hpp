#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace runjob::runtime {

/// Which vector instructions a function is made of. Every set computes the same values.
enum class InstructionSet : std::uint8_t {
  kPlain,   ///< what every processor of the architecture has
  kAvx2,    ///< AVX2 and F16C
  kAvx512,  ///< AVX-512 F, BW, DQ and VL
};

std::string_view to_string(InstructionSet set);  ///< "AVX2"

/// What this processor has, from kPlain up; never empty.
std::span<const InstructionSet> instruction_sets();

/// The last of them.
InstructionSet best_instruction_set();

}  // namespace runjob::runtime
