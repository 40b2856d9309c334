#pragma once

#include "runtime/collectives/instruction_set.hpp"

namespace runjob::runtime {

/// A loop that is compiled once for each InstructionSet. `Loop::run` must be RUNJOB_INLINE, so that it becomes part of
/// each of the three functions and is vectorized with the instructions of that function.
/// Source  GCC's manual, "x86 Function Attributes": a function may be inlined into one whose target has more.
#define RUNJOB_INLINE [[gnu::always_inline]] static inline

#if defined(__x86_64__)
#define RUNJOB_TARGET_AVX2 [[gnu::target("avx2,f16c")]]
#define RUNJOB_TARGET_AVX512 [[gnu::target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#else
#define RUNJOB_TARGET_AVX2
#define RUNJOB_TARGET_AVX512
#endif

template <class Loop, class... Args>
void run_plain(Args... args) {
  Loop::run(args...);
}

template <class Loop, class... Args>
RUNJOB_TARGET_AVX2 void run_avx2(Args... args) {
  Loop::run(args...);
}

template <class Loop, class... Args>
RUNJOB_TARGET_AVX512 void run_avx512(Args... args) {
  Loop::run(args...);
}

/// The version of Loop for `set`, as a pointer to a function of `Args`.
template <class Loop, class... Args>
auto version_of(InstructionSet set) -> void (*)(Args...) {
  switch (set) {
    case InstructionSet::kPlain:
      return run_plain<Loop, Args...>;
    case InstructionSet::kAvx2:
      return run_avx2<Loop, Args...>;
    case InstructionSet::kAvx512:
      return run_avx512<Loop, Args...>;
  }
  return nullptr;
}

}  // namespace runjob::runtime
