#include "runtime/collectives/instruction_set.hpp"

#include <cstddef>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace runjob::runtime {
namespace {

constexpr InstructionSet kAll[] = {InstructionSet::kPlain, InstructionSet::kAvx2, InstructionSet::kAvx512};

#if defined(__x86_64__)
/// clang 14's __builtin_cpu_supports does not know "f16c".
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

std::size_t count_sets() {
  if (!__builtin_cpu_supports("avx2") || !has_f16c()) return 1;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? 3 : 2;
}
#else
std::size_t count_sets() {
  return 1;
}
#endif

}  // namespace

std::string_view to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPlain:
      return "plain";
    case InstructionSet::kAvx2:
      return "AVX2";
    case InstructionSet::kAvx512:
      return "AVX-512";
  }
  return "unknown";
}

std::span<const InstructionSet> instruction_sets() {
  static const std::size_t count = count_sets();
  return {kAll, count};
}

InstructionSet best_instruction_set() {
  return instruction_sets().back();
}

}  // namespace runjob::runtime
