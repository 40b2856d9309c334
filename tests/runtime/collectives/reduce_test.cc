#include "runtime/collectives/reduce.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/error.hpp"
#include "runtime/collectives/half.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kAverage:
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kAdasum:  // is made of other operations
      break;
  }
  return 0;
}

constexpr ReduceOp kOps[] = {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct};

/// Small whole numbers, so that every dtype holds every result exactly.
template <class T>
void check_numbers(DType dtype) {
  std::mt19937 random(7);
  for (const ReduceOp op : kOps) {
    std::vector<T> a, b, out(67);
    for (int i = 0; i < 67; ++i) {
      a.push_back(static_cast<T>(random() % 11));
      b.push_back(static_cast<T>(random() % 11));
    }
    reduce_function(dtype, op)(out.data(), a.data(), b.data(), out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      REQUIRE(static_cast<double>(out[i]) == combine(op, static_cast<double>(a[i]), static_cast<double>(b[i])));
    }
  }
}

}  // namespace

TEST_CASE("every number type is reduced as a loop in double would", "[runtime][unit]") {
  check_numbers<std::uint8_t>(DType::kUint8);
  check_numbers<std::int8_t>(DType::kInt8);
  check_numbers<std::uint16_t>(DType::kUint16);
  check_numbers<std::int16_t>(DType::kInt16);
  check_numbers<std::int32_t>(DType::kInt32);
  check_numbers<std::int64_t>(DType::kInt64);
  check_numbers<float>(DType::kFloat32);
  check_numbers<double>(DType::kFloat64);
}

TEST_CASE("16-bit floats are reduced as their values", "[runtime][unit]") {
  for (const ReduceOp op : kOps) {
    const std::uint16_t a[] = {float_to_float16(1.5F), float_to_float16(-3)};
    const std::uint16_t b[] = {float_to_float16(2), float_to_float16(0.25F)};
    std::uint16_t out[2];
    reduce_function(DType::kFloat16, op)(out, a, b, 2);
    CHECK(float16_to_float(out[0]) == combine(op, 1.5, 2));
    CHECK(float16_to_float(out[1]) == combine(op, -3, 0.25));
    const std::uint16_t c[] = {float_to_bfloat16(1.5F)}, d[] = {float_to_bfloat16(-8)};
    reduce_function(DType::kBfloat16, op)(out, c, d, 1);
    CHECK(bfloat16_to_float(out[0]) == combine(op, 1.5, -8));
  }
}

TEST_CASE("bool: sum and max are or, product and min are and, any non-zero byte is true", "[runtime][unit]") {
  const std::uint8_t a[] = {0, 0, 7, 1}, b[] = {0, 3, 0, 1};
  std::uint8_t out[4];
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
    reduce_function(DType::kBool, op)(out, a, b, 4);
    CHECK(std::memcmp(out, "\0\1\1\1", 4) == 0);
  }
  for (const ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin}) {
    reduce_function(DType::kBool, op)(out, a, b, 4);
    CHECK(std::memcmp(out, "\0\0\0\1", 4) == 0);
  }
}

TEST_CASE("integer sums and products wrap", "[runtime][unit]") {
  std::int8_t small[] = {127};
  const std::int8_t one[] = {1};
  reduce_function(DType::kInt8, ReduceOp::kSum)(small, small, one, 1);
  CHECK(small[0] == -128);
  std::int64_t large[] = {std::numeric_limits<std::int64_t>::max()};
  const std::int64_t two[] = {2};
  reduce_function(DType::kInt64, ReduceOp::kProduct)(large, large, two, 1);
  CHECK(large[0] == -2);
  std::uint16_t word[] = {65535};
  reduce_function(DType::kUint16, ReduceOp::kProduct)(word, word, word, 1);
  CHECK(word[0] == 1);
}

TEST_CASE("short integers become int32, and come back limited to their range", "[runtime][unit]") {
  const InstructionSet set = GENERATE(InstructionSet::kPlain, best_instruction_set());
  const std::int32_t wide[] = {-40000, -200, -1, 0, 100, 200, 300, 70000};
  const auto both_ways = [&](DType dtype, auto type) {
    decltype(type) narrowed[8];
    std::int32_t again[8];
    narrow(dtype, narrowed, wide, 8, set);
    widen(dtype, again, narrowed, 8, set);
    return std::vector<std::int32_t>(again, again + 8);
  };
  CHECK(both_ways(DType::kUint8, std::uint8_t()) == std::vector<std::int32_t>{0, 0, 0, 0, 100, 200, 255, 255});
  CHECK(both_ways(DType::kInt8, std::int8_t()) == std::vector<std::int32_t>{-128, -128, -1, 0, 100, 127, 127, 127});
  CHECK(both_ways(DType::kUint16, std::uint16_t()) == std::vector<std::int32_t>{0, 0, 0, 0, 100, 200, 300, 65535});
  CHECK(both_ways(DType::kInt16, std::int16_t()) ==
        std::vector<std::int32_t>{-32768, -200, -1, 0, 100, 200, 300, 32767});
}

TEST_CASE("only sums that are scaled need another dtype", "[runtime][unit]") {
  for (const DType dtype : {DType::kUint8, DType::kInt8, DType::kUint16, DType::kInt16}) {
    CHECK(sum_dtype(dtype, ReduceOp::kAverage, 1) == DType::kInt32);
    CHECK(sum_dtype(dtype, ReduceOp::kSum, 0.5) == DType::kInt32);
    CHECK(sum_dtype(dtype, ReduceOp::kSum, 1) == dtype);
    CHECK(sum_dtype(dtype, ReduceOp::kMax, 0.5) == dtype);
  }
  CHECK(sum_dtype(DType::kInt32, ReduceOp::kAverage, 1) == DType::kInt32);
  CHECK(sum_dtype(DType::kFloat64, ReduceOp::kAverage, 1) == DType::kFloat64);
  CHECK(sum_dtype(DType::kBfloat16, ReduceOp::kSum, 1) == DType::kFloat32);
  CHECK(sum_dtype(DType::kBool, ReduceOp::kSum, 1) == DType::kBool);
}

TEST_CASE("a NaN wins in min and max from either side", "[runtime][unit]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float a[] = {nan, 1}, b[] = {1, nan};
  float out[2];
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    reduce_function(DType::kFloat32, op)(out, a, b, 2);
    CHECK(std::isnan(out[0]));
    CHECK(std::isnan(out[1]));
  }
}

namespace {

/// Whether the float at `place` is a NaN: the only values whose bits depend on the instructions.
bool is_nan(DType dtype, const void* place) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, place, size_of(dtype));
  if (dtype == DType::kFloat16) return std::isnan(float16_to_float(static_cast<std::uint16_t>(bits)));
  if (dtype == DType::kBfloat16) return std::isnan(bfloat16_to_float(static_cast<std::uint16_t>(bits)));
  if (dtype == DType::kFloat32) return std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return std::isnan(std::bit_cast<double>(bits));
}

bool are_equal(DType dtype, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const std::size_t size = size_of(dtype);
  for (std::size_t i = 0; i < a.size(); i += size) {
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    if (!is_float(dtype) || !is_nan(dtype, &a[i]) || !is_nan(dtype, &b[i])) return false;
  }
  return true;
}

/// Any bits: infinities, NaNs and subnormals among them.
std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// `shift`: elements by which the inputs are off the vectors' alignment.
void compare_with_plain(DType dtype, ReduceOp op, std::size_t count, std::size_t shift) {
  const std::size_t size = size_of(dtype), bytes = count * size, offset = shift * size;
  const auto a = random_bytes(bytes + offset, 1), b = random_bytes(bytes + offset, 2);
  std::vector<std::byte> plain(bytes);
  reduce_function(dtype, op, InstructionSet::kPlain)(plain.data(), &a[offset], &b[offset], count);
  for (const InstructionSet set : instruction_sets()) {
    std::vector<std::byte> out(bytes), in_place = a;
    reduce_function(dtype, op, set)(out.data(), &a[offset], &b[offset], count);
    reduce_function(dtype, op, set)(&in_place[offset], &in_place[offset], &b[offset], count);
    in_place.erase(in_place.begin(), in_place.begin() + static_cast<std::ptrdiff_t>(offset));
    INFO(to_string(dtype) << " " << to_string(op) << " " << count << " " << to_string(set));
    REQUIRE(are_equal(dtype, out, plain));
    REQUIRE(are_equal(dtype, in_place, plain));
  }
}

}  // namespace

TEST_CASE("every instruction set reduces as the plain one does, for any length and address", "[runtime][unit]") {
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (const ReduceOp op : kOps) {
      for (const std::size_t count : {1, 2, 7, 31, 64, 100, 1027}) {
        for (const std::size_t shift : {0, 1}) compare_with_plain(static_cast<DType>(dtype), op, count, shift);
      }
    }
  }
}

TEST_CASE("every instruction set scales as the plain one does", "[runtime][unit]") {
  for (int number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (dtype == DType::kBool) continue;
    for (const std::size_t count : {1, 15, 1027}) {
      for (const double divisor : {1.0, 3.0, 8.0}) {
        const auto in = random_bytes(count * size_of(dtype), 3);
        std::vector<std::byte> plain(in.size()), out(in.size());
        scale(dtype, plain.data(), in.data(), count, 0.7, divisor, InstructionSet::kPlain);
        for (const InstructionSet set : instruction_sets()) {
          scale(dtype, out.data(), in.data(), count, 0.7, divisor, set);
          INFO(to_string(dtype) << " " << count << " / " << divisor << " " << to_string(set));
          REQUIRE(are_equal(dtype, out, plain));
        }
      }
    }
  }
}

TEST_CASE("scaling truncates integers toward zero and stays in range", "[runtime][unit]") {
  std::int32_t values[] = {7, -7, 9};
  scale(DType::kInt32, values, values, 3, 1, 2);
  CHECK(values[0] == 3);
  CHECK(values[1] == -3);
  CHECK(values[2] == 4);
  std::int32_t sum_of_ones[] = {49};
  scale(DType::kInt32, sum_of_ones, sum_of_ones, 1, 1, 49);
  CHECK(sum_of_ones[0] == 1);  // 49 * (1.0 / 49) is less
  std::uint8_t bytes[] = {200, 3};
  scale(DType::kUint8, bytes, bytes, 2, 10, 1);
  CHECK(bytes[0] == 255);
  CHECK(bytes[1] == 30);
  std::int64_t wide[] = {std::numeric_limits<std::int64_t>::max()};
  scale(DType::kInt64, wide, wide, 1, 1e10, 1);
  CHECK(wide[0] == std::numeric_limits<std::int64_t>::max());
  scale(DType::kInt64, wide, wide, 1, std::nan(""), 1);
  CHECK(wide[0] == 0);
  float one_third[] = {1};
  scale(DType::kFloat32, one_third, one_third, 1, 1, 3);
  CHECK(one_third[0] == 1.0F / 3);
  std::uint16_t half[] = {float_to_float16(3)};
  scale(DType::kFloat16, half, half, 1, 0.5, 1);
  CHECK(float16_to_float(half[0]) == 1.5F);
  CHECK_THROWS_AS(scale(DType::kBool, bytes, bytes, 1, 2, 1), runjob::Error);
}

TEST_CASE("a float is scaled by one multiplication in its own precision", "[runtime][unit]") {
  std::size_t wider = 0;  // results that a multiplication in double would round differently
  for (const double divisor : {1.0, 3.0, 49.0}) {
    std::vector<float> floats(1027), scaled_floats(floats.size());
    std::vector<double> doubles(floats.size()), scaled_doubles(floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i) doubles[i] = floats[i] = 0.1F + static_cast<float>(i) * 0.37F;
    scale(DType::kFloat32, scaled_floats.data(), floats.data(), floats.size(), 0.7, divisor);
    scale(DType::kFloat64, scaled_doubles.data(), doubles.data(), doubles.size(), 0.7, divisor);
    const double factor = 0.7 / divisor;
    for (std::size_t i = 0; i < floats.size(); ++i) {
      REQUIRE(scaled_floats[i] == floats[i] * static_cast<float>(factor));
      REQUIRE(scaled_doubles[i] == doubles[i] * factor);
      wider += scaled_floats[i] != static_cast<float>(doubles[i] * factor);
    }
  }
  CHECK(wider > 0);
}

TEST_CASE("every 16-bit pattern survives widening and narrowing", "[runtime][unit]") {
  std::vector<std::uint16_t> all(65536), back(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(all.size());
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (const InstructionSet set : instruction_sets()) {
      widen(dtype, wide.data(), all.data(), all.size(), set);
      narrow(dtype, back.data(), wide.data(), wide.size(), set);
      std::size_t different = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        different += std::isnan(wide[i]) ? !is_nan(dtype, &back[i]) : back[i] != all[i];
      }
      CHECK(different == 0);
    }
  }
}

TEST_CASE("float16 values are what IEEE 754 says", "[runtime][unit]") {
  CHECK(float16_to_float(0x3c00) == 1.0F);
  CHECK(float16_to_float(0x0001) == 0x1p-24F);
  CHECK(float16_to_float(0xfbff) == -65504.0F);
  CHECK(std::isinf(float16_to_float(0x7c00)));
  CHECK(float_to_float16(65519.99F) == 0x7bff);
  CHECK(float_to_float16(65520) == 0x7c00);
  CHECK(float_to_float16(0x1p-25F) == 0);  // a tie goes to even
  CHECK(float_to_float16(0x1.000002p-25F) == 0x0001);
  CHECK(float_to_float16(1 + 0x1p-11F) == 0x3c00);  // a tie goes to even
  CHECK(float_to_float16(1 + 0x3p-11F) == 0x3c02);
  CHECK(float_to_float16(-0.0F) == 0x8000);
  CHECK(std::isnan(float16_to_float(float_to_float16(std::nanf("")))));
  CHECK(std::isnan(bfloat16_to_float(float_to_bfloat16(std::nanf("")))));
  CHECK(float_to_bfloat16(1 + 0x1p-8F) == 0x3f80);  // a tie goes to even
  CHECK(std::isinf(bfloat16_to_float(float_to_bfloat16(std::numeric_limits<float>::max()))));
}
