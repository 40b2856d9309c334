#include "runtime/collectives/reduce.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/error.hpp"
#include "runtime/collectives/half.hpp"

namespace runjob::runtime {
namespace {

// Small integers promote to int before arithmetic and int overflow is undefined: compute in the unsigned
// type.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

struct Sum {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Product {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {  // uint16 * uint16 would promote to a signed int and overflow
      using Wide = std::conditional_t<sizeof(T) < 8, std::uint32_t, std::uint64_t>;
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    } else {
      return a * b;
    }
  }
};

struct Min {
  template <class T>
  static T of(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

struct Max {
  template <class T>
  static T of(T a, T b) {
    return a > b || a != a ? a : b;
  }
};

struct Float16 {
  static float load(std::uint16_t bits) { return float16_to_float(bits); }
  static std::uint16_t store(float value) { return float_to_float16(value); }
};

struct Bfloat16 {
  static float load(std::uint16_t bits) { return bfloat16_to_float(bits); }
  static std::uint16_t store(float value) { return float_to_bfloat16(value); }
};

template <class T, class Op>
void reduce_numbers(void* out, const void* a, const void* b, std::size_t count) {
  auto* result = static_cast<T*>(out);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
  for (std::size_t i = 0; i < count; ++i) result[i] = Op::of(left[i], right[i]);
}

template <class Half, class Op>
void reduce_halves(void* out, const void* a, const void* b, std::size_t count) {
  auto* result = static_cast<std::uint16_t*>(out);
  const auto* left = static_cast<const std::uint16_t*>(a);
  const auto* right = static_cast<const std::uint16_t*>(b);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = Half::store(Op::of(Half::load(left[i]), Half::load(right[i])));
  }
}

template <bool either>
void reduce_bools(void* out, const void* a, const void* b, std::size_t count) {
  auto* result = static_cast<std::uint8_t*>(out);
  const auto* left = static_cast<const std::uint8_t*>(a);
  const auto* right = static_cast<const std::uint8_t*>(b);
  for (std::size_t i = 0; i < count; ++i) {
    const bool l = left[i] != 0, r = right[i] != 0;
    result[i] = static_cast<std::uint8_t>(either ? (l || r) : (l && r));
  }
}

template <class Op>
ReduceFunction for_dtype(DType dtype) {
  constexpr bool kEither = std::is_same_v<Op, Sum> || std::is_same_v<Op, Max>;
  switch (dtype) {
    case DType::kUint8:
      return reduce_numbers<std::uint8_t, Op>;
    case DType::kInt8:
      return reduce_numbers<std::int8_t, Op>;
    case DType::kUint16:
      return reduce_numbers<std::uint16_t, Op>;
    case DType::kInt16:
      return reduce_numbers<std::int16_t, Op>;
    case DType::kInt32:
      return reduce_numbers<std::int32_t, Op>;
    case DType::kInt64:
      return reduce_numbers<std::int64_t, Op>;
    case DType::kFloat16:
      return reduce_halves<Float16, Op>;
    case DType::kFloat32:
      return reduce_numbers<float, Op>;
    case DType::kFloat64:
      return reduce_numbers<double, Op>;
    case DType::kBool:
      return reduce_bools<kEither>;
    case DType::kBfloat16:
      return reduce_halves<Bfloat16, Op>;
  }
  return nullptr;
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    if (value != value) return 0;
    if (value <= static_cast<double>(kLow)) return kLow;
    if (value >= static_cast<double>(kHigh)) return kHigh;  // as double, 2^63 - 1 is 2^63: outside
    return static_cast<T>(value);
  }
}

template <class T>
void scale_numbers(void* out, const void* in, std::size_t count, double multiplier, double divisor) {
  auto* result = static_cast<T*>(out);
  const auto* source = static_cast<const T*>(in);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = from_double<T>(static_cast<double>(source[i]) * multiplier / divisor);
  }
}

template <class Half>
void scale_halves(void* out, const void* in, std::size_t count, double multiplier, double divisor) {
  auto* result = static_cast<std::uint16_t*>(out);
  const auto* source = static_cast<const std::uint16_t*>(in);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = Half::store(static_cast<float>(static_cast<double>(Half::load(source[i])) * multiplier / divisor));
  }
}

}  // namespace

ReduceFunction reduce_function(DType dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::kAverage:
    case ReduceOp::kSum:
      return for_dtype<Sum>(dtype);
    case ReduceOp::kMin:
      return for_dtype<Min>(dtype);
    case ReduceOp::kMax:
      return for_dtype<Max>(dtype);
    case ReduceOp::kProduct:
      return for_dtype<Product>(dtype);
  }
  return nullptr;
}

void scale(DType dtype, void* out, const void* in, std::size_t count, double multiplier, double divisor) {
  switch (dtype) {
    case DType::kUint8:
      return scale_numbers<std::uint8_t>(out, in, count, multiplier, divisor);
    case DType::kInt8:
      return scale_numbers<std::int8_t>(out, in, count, multiplier, divisor);
    case DType::kUint16:
      return scale_numbers<std::uint16_t>(out, in, count, multiplier, divisor);
    case DType::kInt16:
      return scale_numbers<std::int16_t>(out, in, count, multiplier, divisor);
    case DType::kInt32:
      return scale_numbers<std::int32_t>(out, in, count, multiplier, divisor);
    case DType::kInt64:
      return scale_numbers<std::int64_t>(out, in, count, multiplier, divisor);
    case DType::kFloat16:
      return scale_halves<Float16>(out, in, count, multiplier, divisor);
    case DType::kFloat32:
      return scale_numbers<float>(out, in, count, multiplier, divisor);
    case DType::kFloat64:
      return scale_numbers<double>(out, in, count, multiplier, divisor);
    case DType::kBool:
      throw Error(Errc::kBug, "scaling bool values");
    case DType::kBfloat16:
      return scale_halves<Bfloat16>(out, in, count, multiplier, divisor);
  }
}

void widen(DType half, float* out, const void* in, std::size_t count) {
  const auto* source = static_cast<const std::uint16_t*>(in);
  if (half == DType::kFloat16) {
    for (std::size_t i = 0; i < count; ++i) out[i] = float16_to_float(source[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = bfloat16_to_float(source[i]);
  }
}

void narrow(DType half, void* out, const float* in, std::size_t count) {
  auto* result = static_cast<std::uint16_t*>(out);
  if (half == DType::kFloat16) {
    for (std::size_t i = 0; i < count; ++i) result[i] = float_to_float16(in[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) result[i] = float_to_bfloat16(in[i]);
  }
}

}  // namespace runjob::runtime
