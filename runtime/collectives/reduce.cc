#include "runtime/collectives/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/error.hpp"
#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/float16_convert.hpp"
#include "runtime/collectives/half.hpp"
#include "runtime/collectives/half_reduction.hpp"
#include "runtime/collectives/multiversion.hpp"
#include "runtime/collectives/reduce_operators.hpp"

namespace runjob::runtime {
namespace {

// In each loop `out` may be one of the other buffers, but must not overlap them otherwise. "ivdep" informs the compiler
// of this.

template <class T, class Op>
struct ReduceNumbers {
  RUNJOB_INLINE void run(void* out, const void* a, const void* b, std::size_t count) {
    auto* result = static_cast<T*>(out);
    const auto* left = static_cast<const T*>(a);
    const auto* right = static_cast<const T*>(b);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) result[i] = Op::of(left[i], right[i]);
  }
};

template <bool either>
struct ReduceBools {
  RUNJOB_INLINE void run(void* out, const void* a, const void* b, std::size_t count) {
    auto* result = static_cast<std::uint8_t*>(out);
    const auto* left = static_cast<const std::uint8_t*>(a);
    const auto* right = static_cast<const std::uint8_t*>(b);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const auto l = static_cast<std::uint8_t>(left[i] != 0), r = static_cast<std::uint8_t>(right[i] != 0);
      result[i] = static_cast<std::uint8_t>(either ? (l | r) : (l & r));
    }
  }
};

template <class Loop>
ReduceFunction reduce_version(InstructionSet set) {
  return version_of<Loop, void*, const void*, const void*, std::size_t>(set);
}

template <class Op>
ReduceFunction for_dtype(DType dtype, InstructionSet set) {
  constexpr bool kEither = std::is_same_v<Op, Sum> || std::is_same_v<Op, Max>;
  switch (dtype) {
    case DType::kUint8:
      return reduce_version<ReduceNumbers<std::uint8_t, Op>>(set);
    case DType::kInt8:
      return reduce_version<ReduceNumbers<std::int8_t, Op>>(set);
    case DType::kUint16:
      return reduce_version<ReduceNumbers<std::uint16_t, Op>>(set);
    case DType::kInt16:
      return reduce_version<ReduceNumbers<std::int16_t, Op>>(set);
    case DType::kInt32:
      return reduce_version<ReduceNumbers<std::int32_t, Op>>(set);
    case DType::kInt64:
      return reduce_version<ReduceNumbers<std::int64_t, Op>>(set);
    case DType::kFloat32:
      return reduce_version<ReduceNumbers<float, Op>>(set);
    case DType::kFloat64:
      return reduce_version<ReduceNumbers<double, Op>>(set);
    case DType::kBool:
      return reduce_version<ReduceBools<kEither>>(set);
    case DType::kFloat16:
    case DType::kBfloat16:
      break;  // reduce_function() handles these elsewhere
  }
  return nullptr;
}

template <class T>
RUNJOB_INLINE T from_double(double value) {
  constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  if (value != value) return 0;
  if (value <= static_cast<double>(kLow)) return kLow;
  if (value >= static_cast<double>(kHigh)) return kHigh;  // as a double, 2^63 - 1 becomes 2^63, which is out of range
  return static_cast<T>(value);
}

/// Integers. The loop with a division is slower than memory. A power of two has an exact reciprocal, so that both loops
/// give the same result.
template <class T, bool divide>
struct ScaleIntegers {
  RUNJOB_INLINE void run(void* out, const void* in, std::size_t count, double multiplier, double second) {
    auto* result = static_cast<T*>(out);
    const auto* source = static_cast<const T*>(in);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const double product = static_cast<double>(source[i]) * multiplier;
      result[i] = from_double<T>(divide ? product / second : product * second);
    }
  }
};

template <class T>
struct ScaleFloats {
  RUNJOB_INLINE void run(void* out, const void* in, std::size_t count, T factor) {
    auto* result = static_cast<T*>(out);
    const auto* source = static_cast<const T*>(in);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) result[i] = source[i] * factor;
  }
};

template <class T>
void scale_numbers(void* out, const void* in, std::size_t count, double multiplier, double divisor,
                   InstructionSet set) {
  if constexpr (std::is_floating_point_v<T>) {
    version_of<ScaleFloats<T>, void*, const void*, std::size_t, T>(set)(out, in, count,
                                                                        static_cast<T>(multiplier / divisor));
  } else if (is_power_of_two(divisor)) {
    version_of<ScaleIntegers<T, false>, void*, const void*, std::size_t, double, double>(set)(out, in, count,
                                                                                              multiplier, 1 / divisor);
  } else {
    version_of<ScaleIntegers<T, true>, void*, const void*, std::size_t, double, double>(set)(out, in, count, multiplier,
                                                                                             divisor);
  }
}

void scale_halves(DType dtype, void* out, const void* in, std::size_t count, double multiplier, double divisor,
                  InstructionSet set) {
  constexpr std::size_t kPiece = 512;
  alignas(64) float wide[kPiece];
  for (std::size_t done = 0; done < count; done += kPiece) {
    const std::size_t piece = std::min(kPiece, count - done);
    widen(dtype, wide, static_cast<const std::uint16_t*>(in) + done, piece, set);
    scale_numbers<float>(wide, wide, piece, multiplier, divisor, set);
    narrow(dtype, static_cast<std::uint16_t*>(out) + done, wide, piece, set);
  }
}

template <class T>
struct WidenIntegers {
  RUNJOB_INLINE void run(std::int32_t* out, const void* in, std::size_t count) {
    const auto* source = static_cast<const T*>(in);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) out[i] = source[i];
  }
};

template <class T>
struct NarrowIntegers {
  RUNJOB_INLINE void run(void* out, const std::int32_t* in, std::size_t count) {
    constexpr std::int32_t kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    auto* result = static_cast<T*>(out);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<T>(std::min(std::max(in[i], kLow), kHigh));
  }
};

/// Calls `use` with a value of the type of an integer of 8 or 16 bits.
template <class Use>
void with_short_integer(DType dtype, Use use) {
  switch (dtype) {
    case DType::kUint8:
      return use(std::uint8_t());
    case DType::kInt8:
      return use(std::int8_t());
    case DType::kUint16:
      return use(std::uint16_t());
    case DType::kInt16:
      return use(std::int16_t());
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kBool:
    case DType::kBfloat16:
      throw Error(Errc::kBug, "a conversion of another dtype as a short integer");
  }
}

struct WidenBfloat16 {
  RUNJOB_INLINE void run(float* out, const std::uint16_t* in, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = bfloat16_to_float(in[i]);
  }
};

struct NarrowBfloat16 {
  RUNJOB_INLINE void run(std::uint16_t* out, const float* in, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = float_to_bfloat16(in[i]);
  }
};

}  // namespace

bool is_power_of_two(double factor) {
  int exponent = 0;
  return std::frexp(factor, &exponent) == 0.5 && exponent > -100 && exponent < 100;
}

ReduceFunction reduce_function(DType dtype, ReduceOp op, InstructionSet set) {
  if (is_half(dtype)) return half_pair_reduction(dtype, op, set);
  return with_operator(op, [&](auto reduction) { return for_dtype<decltype(reduction)>(dtype, set); });
}

void scale(DType dtype, void* out, const void* in, std::size_t count, double multiplier, double divisor,
           InstructionSet set) {
  switch (dtype) {
    case DType::kUint8:
      return scale_numbers<std::uint8_t>(out, in, count, multiplier, divisor, set);
    case DType::kInt8:
      return scale_numbers<std::int8_t>(out, in, count, multiplier, divisor, set);
    case DType::kUint16:
      return scale_numbers<std::uint16_t>(out, in, count, multiplier, divisor, set);
    case DType::kInt16:
      return scale_numbers<std::int16_t>(out, in, count, multiplier, divisor, set);
    case DType::kInt32:
      return scale_numbers<std::int32_t>(out, in, count, multiplier, divisor, set);
    case DType::kInt64:
      return scale_numbers<std::int64_t>(out, in, count, multiplier, divisor, set);
    case DType::kFloat32:
      return scale_numbers<float>(out, in, count, multiplier, divisor, set);
    case DType::kFloat64:
      return scale_numbers<double>(out, in, count, multiplier, divisor, set);
    case DType::kBool:
      throw Error(Errc::kBug, "scaling bool values");
    case DType::kFloat16:
    case DType::kBfloat16:
      return scale_halves(dtype, out, in, count, multiplier, divisor, set);
  }
}

void widen(DType half, float* out, const void* in, std::size_t count, InstructionSet set) {
  const auto* source = static_cast<const std::uint16_t*>(in);
  if (half == DType::kFloat16) return float16_to_floats(set)(out, source, count);
  if (half != DType::kBfloat16) throw Error(Errc::kBug, "a conversion of another dtype as a half");
  version_of<WidenBfloat16, float*, const std::uint16_t*, std::size_t>(set)(out, source, count);
}

void narrow(DType half, void* out, const float* in, std::size_t count, InstructionSet set) {
  auto* result = static_cast<std::uint16_t*>(out);
  if (half == DType::kFloat16) return floats_to_float16(set)(result, in, count);
  if (half != DType::kBfloat16) throw Error(Errc::kBug, "a conversion of another dtype as a half");
  version_of<NarrowBfloat16, std::uint16_t*, const float*, std::size_t>(set)(result, in, count);
}

void widen(DType integer, std::int32_t* out, const void* in, std::size_t count, InstructionSet set) {
  with_short_integer(integer, [&](auto type) {
    version_of<WidenIntegers<decltype(type)>, std::int32_t*, const void*, std::size_t>(set)(out, in, count);
  });
}

void narrow(DType integer, void* out, const std::int32_t* in, std::size_t count, InstructionSet set) {
  with_short_integer(integer, [&](auto type) {
    version_of<NarrowIntegers<decltype(type)>, void*, const std::int32_t*, std::size_t>(set)(out, in, count);
  });
}

void to_sum(DType wide, void* out, DType dtype, const void* in, std::size_t count) {
  if (wide == dtype) return copy_bytes(out, in, count * size_of(dtype));
  if (is_half(dtype)) return widen(dtype, static_cast<float*>(out), in, count);
  widen(dtype, static_cast<std::int32_t*>(out), in, count);
}

void from_sum(DType dtype, void* out, DType wide, const void* in, std::size_t count) {
  if (wide == dtype) return copy_bytes(out, in, count * size_of(dtype));
  if (is_half(dtype)) return narrow(dtype, out, static_cast<const float*>(in), count);
  narrow(dtype, out, static_cast<const std::int32_t*>(in), count);
}

}  // namespace runjob::runtime
