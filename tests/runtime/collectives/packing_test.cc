#include "runtime/collectives/packing.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/collectives/half.hpp"
#include "runtime/collectives/instruction_set.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// More than the loops take at once, and not a multiple of anything.
constexpr std::size_t kCount = 1237;

template <class T>
std::vector<T> values() {
  std::vector<T> result;
  for (std::size_t i = 0; i < kCount; ++i)
    result.push_back(static_cast<T>((static_cast<double>(i) - 600) * 1.37e-2 * ((i % 7) + 1)));
  result[3] = std::numeric_limits<T>::infinity();
  result[5] = std::numeric_limits<T>::quiet_NaN();
  result[7] = static_cast<T>(70000);  // more than float16 holds
  return result;
}

std::uint16_t plain_narrow(DType half, float value) {
  return half == DType::kFloat16 ? float_to_float16(value) : float_to_bfloat16(value);
}

float plain_widen(DType half, std::uint16_t bits) {
  return half == DType::kFloat16 ? float16_to_float(bits) : bfloat16_to_float(bits);
}

/// The same number, or both none.
bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

template <class T>
void check_there_and_back(DType dtype, DType half, double factor, InstructionSet set) {
  const std::vector<T> in = values<T>();
  std::vector<std::uint16_t> packed(kCount + 1, 0xabcd);
  convert(half, packed.data(), dtype, in.data(), kCount, factor, set);
  std::vector<T> out(kCount + 1, T{17});
  convert(dtype, out.data(), half, packed.data(), kCount, factor, set);
  for (std::size_t i = 0; i < kCount; ++i) {
    INFO(i);
    const float scaled = static_cast<float>(static_cast<double>(in[i]) * factor);
    const float narrowed = plain_widen(half, plain_narrow(half, scaled));
    REQUIRE(same(plain_widen(half, packed[i]), narrowed));
    REQUIRE(same(out[i], static_cast<T>(static_cast<double>(narrowed) * factor)));
  }
  CHECK(packed[kCount] == 0xabcd);
  CHECK(out[kCount] == T{17});
}

std::vector<InstructionSet> sets() {
  std::vector<InstructionSet> result;
  for (const InstructionSet set : {InstructionSet::kPlain, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (static_cast<int>(set) <= static_cast<int>(best_instruction_set())) result.push_back(set);
  }
  return result;
}

}  // namespace

TEST_CASE("floats are scaled, narrowed and come back as plain code does it", "[runtime][unit]") {
  for (const InstructionSet set : sets()) {
    const DType half = GENERATE(DType::kFloat16, DType::kBfloat16);
    const double factor = GENERATE(1.0, 0.25, 3.0);
    check_there_and_back<float>(DType::kFloat32, half, factor, set);
    check_there_and_back<double>(DType::kFloat64, half, factor, set);
  }
}

TEST_CASE("what travels as it is, is copied", "[runtime][unit]") {
  for (int number = 0; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    std::vector<std::uint8_t> in(kCount * size_of(dtype)), out(in.size() + 1, 0x5a);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * 31);
    convert(dtype, out.data(), dtype, in.data(), kCount, 1);
    CHECK(std::memcmp(in.data(), out.data(), in.size()) == 0);
    CHECK(out.back() == 0x5a);
  }
  convert(DType::kInt8, nullptr, DType::kInt8, nullptr, 0, 1);
}
