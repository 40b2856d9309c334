#include "runtime/collectives/float16_convert.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/collectives/half.hpp"
#include "runtime/collectives/multiversion.hpp"

namespace runjob::runtime {
namespace {

void widen_plain(float* out, const std::uint16_t* in, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = float16_to_float(in[i]);
}

void narrow_plain(std::uint16_t* out, const float* in, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = float_to_float16(in[i]);
}

#if defined(__x86_64__)

// These conversions use intrinsics, because no compiler of 2022 vectorizes plain loops of them.

RUNJOB_TARGET_AVX2 void widen_avx2(float* out, const std::uint16_t* in, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
  for (; i < count; ++i) out[i] = _cvtsh_ss(in[i]);
}

RUNJOB_TARGET_AVX2 void narrow_avx2(std::uint16_t* out, const float* in, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
  for (; i < count; ++i) out[i] = _cvtss_sh(in[i], _MM_FROUND_TO_NEAREST_INT);
}

RUNJOB_TARGET_AVX512 void widen_avx512(float* out, const std::uint16_t* in, std::size_t count) {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
  }
  for (; i < count; ++i) out[i] = _cvtsh_ss(in[i]);
}

RUNJOB_TARGET_AVX512 void narrow_avx512(std::uint16_t* out, const float* in, std::size_t count) {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i halves = _mm512_cvtps_ph(_mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), halves);
  }
  for (; i < count; ++i) out[i] = _cvtss_sh(in[i], _MM_FROUND_TO_NEAREST_INT);
}

#else

constexpr auto widen_avx2 = widen_plain, widen_avx512 = widen_plain;
constexpr auto narrow_avx2 = narrow_plain, narrow_avx512 = narrow_plain;

#endif

}  // namespace

Float16ToFloats float16_to_floats(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPlain:
      return widen_plain;
    case InstructionSet::kAvx2:
      return widen_avx2;
    case InstructionSet::kAvx512:
      return widen_avx512;
  }
  return nullptr;
}

FloatsToFloat16 floats_to_float16(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPlain:
      return narrow_plain;
    case InstructionSet::kAvx2:
      return narrow_avx2;
    case InstructionSet::kAvx512:
      return narrow_avx512;
  }
  return nullptr;
}

}  // namespace runjob::runtime
