#include "runtime/collectives/half_reduction.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/error.hpp"
#include "runtime/collectives/half.hpp"
#include "runtime/collectives/multiversion.hpp"
#include "runtime/collectives/reduce_operators.hpp"

namespace runjob::runtime {
namespace {

const std::uint16_t* bits_of(const void* halves) {
  return static_cast<const std::uint16_t*>(halves);
}

struct Float16 {
  static float widen(std::uint16_t bits) { return float16_to_float(bits); }
  static std::uint16_t narrow(float value) { return float_to_float16(value); }
};

struct Bfloat16 {
  static float widen(std::uint16_t bits) { return bfloat16_to_float(bits); }
  static std::uint16_t narrow(float value) { return float_to_bfloat16(value); }
};

template <class Half, class Op>
void reduce_plain(void* out, const void* const* inputs, std::size_t ranks, std::size_t count, float factor) {
  auto* result = static_cast<std::uint16_t*>(out);
  for (std::size_t i = 0; i < count; ++i) {
    float sum = Half::widen(bits_of(inputs[0])[i]);
    for (std::size_t rank = 1; rank < ranks; ++rank) sum = Op::of(sum, Half::widen(bits_of(inputs[rank])[i]));
    result[i] = Half::narrow(sum * factor);
  }
}

#if defined(__x86_64__)

// The vectors have 256 bits even where longer ones exist: these loops are faster than the code that a compiler
// generates from plain loops with AVX-512.

#define RUNJOB_AVX2_INLINE RUNJOB_TARGET_AVX2 [[gnu::always_inline]] static inline

/// A vector full of 16-bit floats, widened into two vectors, in any order.
struct Wide {
  __m256 first, second;
};
constexpr std::size_t kLanes = 16;

struct Float16Lanes {
  RUNJOB_AVX2_INLINE Wide widen(const std::uint16_t* in) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + kLanes / 2)))};
  }
  RUNJOB_AVX2_INLINE void narrow(std::uint16_t* out, const Wide& values) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(values.first, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + kLanes / 2),
                     _mm256_cvtps_ph(values.second, _MM_FROUND_TO_NEAREST_INT));
  }
};

/// The even and the odd elements: each bfloat16 is widened at its position.
struct Bfloat16Lanes {
  RUNJOB_AVX2_INLINE Wide widen(const std::uint16_t* in) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xffff0000))))};
  }
  RUNJOB_AVX2_INLINE void narrow(std::uint16_t* out, const Wide& values) {
    const __m256i even = _mm256_srli_epi32(rounded(values.first), 16);
    const __m256i both = _mm256_blend_epi16(even, rounded(values.second), 0xaa);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), both);
  }
  /// Rounds; the result is in the upper halves, as in float_to_bfloat16(). A NaN comes from arithmetic, which has set
  /// the bit that keeps it a NaN, so that rounding up cannot make it infinite.
  RUNJOB_AVX2_INLINE __m256i rounded(__m256 values) {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i is_number = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_ORD_Q));
    return _mm256_add_epi32(bits, _mm256_and_si256(bias, is_number));
  }
};

template <class Op>
RUNJOB_AVX2_INLINE __m256 combine(__m256 a, __m256 b) {
  if constexpr (std::is_same_v<Op, Sum>) {
    return _mm256_add_ps(a, b);
  } else if constexpr (std::is_same_v<Op, Product>) {
    return _mm256_mul_ps(a, b);
  } else {
    const __m256 chosen = std::is_same_v<Op, Min> ? _mm256_min_ps(a, b) : _mm256_max_ps(a, b);  // b if either is a NaN
    return _mm256_blendv_ps(chosen, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  }
}

template <class Op>
RUNJOB_AVX2_INLINE Wide combine(const Wide& a, const Wide& b) {
  return {combine<Op>(a.first, b.first), combine<Op>(a.second, b.second)};
}

RUNJOB_AVX2_INLINE Wide scaled(const Wide& values, __m256 factor) {
  return {_mm256_mul_ps(values.first, factor), _mm256_mul_ps(values.second, factor)};
}

/// Reduces the elements from `first` on that fill `vectors` vectors, repeatedly. Returns the index of the first
/// remaining element.
template <class Half, class Op, std::size_t vectors>
RUNJOB_AVX2_INLINE std::size_t reduce_blocks(std::uint16_t* out, const void* const* inputs, std::size_t ranks,
                                             std::size_t first, std::size_t count, __m256 factor) {
  for (; first + vectors * kLanes <= count; first += vectors * kLanes) {
    Wide sums[vectors];
    for (std::size_t i = 0; i < vectors; ++i) sums[i] = Half::widen(bits_of(inputs[0]) + first + i * kLanes);
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < vectors; ++i) {
        sums[i] = combine<Op>(sums[i], Half::widen(bits_of(inputs[rank]) + first + i * kLanes));
      }
    }
    for (std::size_t i = 0; i < vectors; ++i) Half::narrow(out + first + i * kLanes, scaled(sums[i], factor));
  }
  return first;
}

template <class Half, class Op>
RUNJOB_TARGET_AVX2 void reduce_avx2(void* out, const void* const* inputs, std::size_t ranks, std::size_t count,
                                    float factor) {
  auto* result = static_cast<std::uint16_t*>(out);
  const __m256 factors = _mm256_set1_ps(factor);
  std::size_t done = reduce_blocks<Half, Op, 2>(result, inputs, ranks, 0, count, factors);
  done = reduce_blocks<Half, Op, 1>(result, inputs, ranks, done, count, factors);
  if (done == count) return;
  const std::size_t rest_bytes = (count - done) * sizeof(std::uint16_t);
  std::uint16_t rest[kLanes] = {};
  std::memcpy(rest, bits_of(inputs[0]) + done, rest_bytes);
  Wide sum = Half::widen(rest);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    std::memcpy(rest, bits_of(inputs[rank]) + done, rest_bytes);
    sum = combine<Op>(sum, Half::widen(rest));
  }
  Half::narrow(rest, scaled(sum, factors));
  std::memcpy(result + done, rest, rest_bytes);
}

#else

using Float16Lanes = Float16;
using Bfloat16Lanes = Bfloat16;

template <class Half, class Op>
constexpr auto reduce_avx2 = reduce_plain<Half, Op>;

#endif

struct Functions {
  HalfReduction of_all;
  ReduceFunction of_two;
};

template <HalfReduction reduce>
void reduce_pair(void* out, const void* a, const void* b, std::size_t count) {
  const void* const inputs[] = {a, b};
  reduce(out, inputs, 2, count, 1);
}

template <class Half, class Lanes, class Op>
Functions functions_for(InstructionSet set) {
  if (set == InstructionSet::kPlain) return {reduce_plain<Half, Op>, reduce_pair<reduce_plain<Half, Op>>};
  return {reduce_avx2<Lanes, Op>, reduce_pair<reduce_avx2<Lanes, Op>>};
}

Functions functions_for(DType half, ReduceOp op, InstructionSet set) {
  return with_operator(op, [&](auto reduction) {
    using Op = decltype(reduction);
    if (half == DType::kFloat16) return functions_for<Float16, Float16Lanes, Op>(set);
    if (half == DType::kBfloat16) return functions_for<Bfloat16, Bfloat16Lanes, Op>(set);
    throw Error(Errc::kBug, "a reduction of another dtype as a half");
  });
}

}  // namespace

HalfReduction half_reduction(DType half, ReduceOp op, InstructionSet set) {
  return functions_for(half, op, set).of_all;
}

ReduceFunction half_pair_reduction(DType half, ReduceOp op, InstructionSet set) {
  return functions_for(half, op, set).of_two;
}

}  // namespace runjob::runtime
