#include "runtime/operations/slice_arithmetic.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/reduction_inputs.hpp"

using namespace runjob::runtime;

namespace {

float small_value(std::uint64_t bits) {
  return (static_cast<float>(bits % 20001) - 10000) / 3000;
}

double load_value(DType dtype, const Bytes& bytes, std::size_t i) {
  const void* const place = &bytes[i * size_of(dtype)];
  std::uint16_t half = 0;
  if (is_half(dtype)) std::memcpy(&half, place, sizeof half);
  if (dtype == DType::kFloat16) return float16_to_float(half);
  if (dtype == DType::kBfloat16) return bfloat16_to_float(half);
  float value = 0;
  double wide = 0;
  std::memcpy(dtype == DType::kFloat32 ? static_cast<void*>(&value) : &wide, place, size_of(dtype));
  return dtype == DType::kFloat32 ? value : wide;
}

double epsilon(DType dtype) {
  return dtype == DType::kFloat16    ? 0x1p-11
         : dtype == DType::kBfloat16 ? 0x1p-8
         : dtype == DType::kFloat32  ? 0x1p-24
                                     : 0x1p-53;
}

}  // namespace

TEST_CASE("dot products and sums of slices are those of plain loops in float64", "[runtime][unit]") {
  const DType dtype = GENERATE(DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64);
  const std::size_t count = GENERATE(0u, 1u, 255u, 256u, 1000u), ranks = GENERATE(1u, 3u);
  std::vector<Bytes> inputs;
  std::vector<const void*> slices;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    inputs.push_back(make_input(dtype, count, static_cast<int>(rank), small_value));
  for (const Bytes& input : inputs) slices.push_back(input.data());
  const std::vector<double> factors{0.5, -2, 1.0 / 3};
  std::vector<std::vector<double>> of_sets;
  std::vector<Bytes> sums;
  for (const InstructionSet set : instruction_sets()) {
    of_sets.emplace_back(ranks * ranks);
    find_dot_products(dtype, slices, count, of_sets.back(), set);
    sums.emplace_back(count * size_of(dtype));
    sum_with_factors(dtype, sums.back().data(), slices, count, {factors.data(), ranks}, set);
    CHECK(of_sets.back() == of_sets.front());
    CHECK(sums.back() == sums.front());
  }
  for (std::size_t i = 0; i < ranks; ++i) {
    for (std::size_t j = i; j < ranks; ++j) {
      double expected = 0, magnitude = 0;
      for (std::size_t k = 0; k < count; ++k) {
        const double term = load_value(dtype, inputs[i], k) * load_value(dtype, inputs[j], k);
        expected += term;
        magnitude += std::abs(term);
      }
      CHECK(std::abs(of_sets.front()[i * ranks + j] - expected) <= 1e-13 * magnitude);
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    double expected = 0, magnitude = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      expected += factors[rank] * load_value(dtype, inputs[rank], k);
      magnitude += std::abs(factors[rank] * load_value(dtype, inputs[rank], k));
    }
    const double tolerance = 1.001 * epsilon(dtype) * std::abs(expected) + 1e-15 * magnitude + 0x1p-25;
    REQUIRE(std::abs(load_value(dtype, sums.front(), k) - expected) <= tolerance);
  }
}

TEST_CASE("a sum is rounded to 16 bits once", "[runtime][unit]") {
  // float32 would round 1 + 2^-11 + 2^-40 to the middle of two float16, and that to the lower one, which is even.
  const DType dtype = DType::kFloat16;
  const std::uint16_t one = float_to_float16(1);
  const void* const slices[] = {&one, &one, &one};
  const std::vector<double> factors{1, 0x1p-11, 0x1p-40};
  std::uint16_t sum = 0;
  sum_with_factors(dtype, &sum, slices, 1, factors);
  CHECK(float16_to_float(sum) == 1 + 0x1p-10f);
}

TEST_CASE("factors that are not numbers make the whole sum NaN", "[runtime][unit]") {
  const std::vector<float> zeros(300);
  std::vector<float> sum(300);
  const void* const slices[] = {zeros.data()};
  const std::vector<double> factors{std::nan("")};
  sum_with_factors(DType::kFloat32, sum.data(), slices, sum.size(), factors);
  for (const float value : sum) REQUIRE(std::isnan(value));
}
