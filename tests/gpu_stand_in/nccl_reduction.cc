#include "tests/gpu_stand_in/nccl_reduction.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stand_in {
namespace {

using namespace runjob::runtime::nccl;

/// The upper half of a float32, rounded to even.
struct Brain {
  std::uint16_t bits = 0;
  Brain() = default;
  explicit Brain(double value) {
    const auto whole = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    bits = static_cast<std::uint16_t>((whole + 0x7fff + ((whole >> 16) & 1)) >> 16);
  }
  explicit operator double() const {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  }
};

/// IEEE 754 binary16, without NaNs.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(double value) {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double size = std::fabs(value);
    if (size >= 65520) {
      bits = sign | 0x7c00;
    } else if (size < 6.103515625e-05) {
      bits = static_cast<std::uint16_t>(sign | static_cast<int>(std::nearbyint(size * 16777216)));
    } else {
      int exponent = 0;
      const double fraction = std::frexp(size, &exponent);  // in [0.5, 1)
      const int mantissa = static_cast<int>(std::nearbyint(fraction * 2048));
      bits = static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + (mantissa - 1024)));
    }
  }
  explicit operator double() const {
    const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    const double size = exponent == 0 ? mantissa / 16777216.0 : std::ldexp(1024 + mantissa, exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
  }
};

template <class T>
double value_as(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return static_cast<double>(value);
}

/// A caller has passed a number that is none of NCCL's types.
[[noreturn]] void unknown(DataType dtype) {
  std::fprintf(stderr, "NCCL's stand-in: there is no type %d\n", static_cast<int>(dtype));
  std::abort();
}

template <class T>
T combine(RedOp op, T a, T b) {
  switch (op) {
    case kProd:
      return a * b;
    case kMax:
      return std::max(a, b);
    case kMin:
      return std::min(a, b);
    default:
      return a + b;
  }
}

/// `Wide` is the type of the arithmetic.
template <class T, class Wide>
void reduce_as(const Operator& how, const std::vector<const char*>& inputs, char* out, std::size_t count) {
  const double ranks = static_cast<double>(inputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    Wide sum{};
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      T element;
      std::memcpy(&element, inputs[rank] + i * sizeof(T), sizeof(T));
      auto value = static_cast<Wide>(element);
      if (how.factor != 1) value = static_cast<Wide>(static_cast<double>(value) * how.factor);
      sum = rank == 0 ? value : static_cast<Wide>(combine(how.op, sum, value));
    }
    if (how.op == kAvg) sum = static_cast<Wide>(static_cast<double>(sum) / ranks);
    const auto result = static_cast<T>(sum);
    std::memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

}  // namespace

std::size_t bytes_of(DataType dtype) {
  switch (dtype) {
    case kInt8:
    case kUint8:
      return 1;
    case kFloat16:
    case kBfloat16:
      return 2;
    case kInt32:
    case kFloat32:
      return 4;
    case kInt64:
    case kFloat64:
      return 8;
  }
  unknown(dtype);
}

double value_of(DataType dtype, const void* element) {
  switch (dtype) {
    case kInt8:
      return value_as<std::int8_t>(element);
    case kUint8:
      return value_as<std::uint8_t>(element);
    case kInt32:
      return value_as<std::int32_t>(element);
    case kInt64:
      return value_as<std::int64_t>(element);
    case kFloat16:
      return value_as<Half>(element);
    case kBfloat16:
      return value_as<Brain>(element);
    case kFloat32:
      return value_as<float>(element);
    case kFloat64:
      return value_as<double>(element);
  }
  unknown(dtype);
}

void reduce(DataType dtype, const Operator& how, const std::vector<const char*>& inputs, char* out, std::size_t count) {
  switch (dtype) {
    case kInt8:
      return reduce_as<std::int8_t, std::int64_t>(how, inputs, out, count);
    case kUint8:
      return reduce_as<std::uint8_t, std::uint64_t>(how, inputs, out, count);
    case kInt32:
      return reduce_as<std::int32_t, std::int64_t>(how, inputs, out, count);
    case kInt64:
      return reduce_as<std::int64_t, std::int64_t>(how, inputs, out, count);
    case kFloat16:
      return reduce_as<Half, double>(how, inputs, out, count);
    case kBfloat16:
      return reduce_as<Brain, double>(how, inputs, out, count);
    case kFloat32:
      return reduce_as<float, float>(how, inputs, out, count);
    case kFloat64:
      return reduce_as<double, double>(how, inputs, out, count);
  }
  unknown(dtype);
}

}  // namespace stand_in
