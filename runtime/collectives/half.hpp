#pragma once

#include <bit>
#include <cstdint>

/// Conversions between float32 and the two 16-bit floats, which are represented by their bits. Rounding is to nearest,
/// ties to even; a NaN stays a NaN, and values that are too large become infinite.
/// Source  IEEE 754-2019 binary16 (1 sign, 5 exponent, 10 fraction bits); bfloat16 is the upper half of binary32.
namespace runjob::runtime {

inline float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // rounding could turn it to infinity
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float float16_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1f;
  const std::uint32_t fraction = half & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24 is exact in float32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

inline std::uint16_t float_to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // 65520 and above
  if (magnitude < 0x38800000) {  // below 2^-14: adding 2^-1 lets the FPU round at the last subnormal bit, 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

}  // namespace runjob::runtime
