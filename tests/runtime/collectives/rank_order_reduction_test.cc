#include "runtime/collectives/rank_order_reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/collectives/half.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

template <class T>
std::vector<T> reduce(DType dtype, ReduceOp op, const std::vector<std::vector<T>>& inputs, double prescale = 1,
                      double postscale = 1) {
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  std::vector<T> out(inputs.front().size());
  RankOrderReduction(dtype, op, prescale, postscale, static_cast<int>(inputs.size()))
      .run(out.data(), pointers, out.size());
  return out;
}

}  // namespace

TEST_CASE("inputs are reduced in the order of the ranks, to the last bit", "[runtime][unit]") {
  const std::size_t ranks = GENERATE(1u, 2u, 3u, 7u);
  const std::size_t count = GENERATE(1u, 17u, 2048u, 5001u);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1e3F);
  std::vector<std::vector<float>> inputs(ranks, std::vector<float>(count));
  for (auto& input : inputs) {
    for (float& value : input) value = normal(random);
  }
  std::vector<float> sum = inputs[0], least = inputs[0];
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += inputs[rank][i];
      least[i] = std::min(least[i], inputs[rank][i]);
    }
  }
  CHECK(reduce(DType::kFloat32, ReduceOp::kSum, inputs) == sum);
  CHECK(reduce(DType::kFloat32, ReduceOp::kMin, inputs) == least);
}

TEST_CASE("the result may take any input's place", "[runtime][unit]") {
  const DType dtype = GENERATE(DType::kFloat16, DType::kInt16);
  const ReduceOp op = GENERATE(ReduceOp::kSum, ReduceOp::kAverage);
  const std::size_t ranks = GENERATE(1u, 2u, 3u, 4u);
  const std::size_t place = GENERATE_REF(range(std::size_t{0}, ranks));
  const double prescale = GENERATE(1.0, 0.5);
  std::vector<std::vector<std::int16_t>> inputs(ranks, std::vector<std::int16_t>(9000));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < inputs[rank].size(); ++i) {
      inputs[rank][i] = static_cast<std::int16_t>((i * 31 + rank * 7) % 15000);
    }
  }
  const auto apart = reduce(dtype, op, inputs, prescale);
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  RankOrderReduction(dtype, op, prescale, 1, static_cast<int>(ranks))
      .run(inputs[place].data(), pointers, inputs[place].size());
  CHECK(inputs[place] == apart);
}

TEST_CASE("each input is scaled before, the result after the reduction", "[runtime][unit]") {
  const std::vector<std::vector<float>> inputs{{1, 2}, {3, 4}, {5, 6}};
  CHECK(reduce(DType::kFloat32, ReduceOp::kAverage, inputs) == std::vector<float>{3, 4});
  CHECK(reduce(DType::kFloat32, ReduceOp::kSum, inputs, 2, 0.5) == std::vector<float>{9, 12});
  CHECK(reduce(DType::kFloat32, ReduceOp::kProduct, inputs, 2, 1) == std::vector<float>{120, 384});
  const std::vector<std::vector<std::int32_t>> whole{{-3, 5}, {-4, 5}};
  CHECK(reduce(DType::kInt32, ReduceOp::kAverage, whole) == std::vector<std::int32_t>{-3, 5});
  CHECK(reduce(DType::kInt32, ReduceOp::kSum, whole, 0.5, 3) == std::vector<std::int32_t>{-9, 12});  // (-1) + (-2)
}

TEST_CASE("of one rank, the result is its input, scaled", "[runtime][unit]") {
  const std::vector<std::vector<std::int32_t>> one{{-3, 5, 7}};
  CHECK(reduce(DType::kInt32, ReduceOp::kSum, one) == one[0]);
  CHECK(reduce(DType::kInt32, ReduceOp::kAverage, one, 2, 3) == std::vector<std::int32_t>{-18, 30, 42});
}

TEST_CASE("16-bit floats are summed in float32 and rounded once", "[runtime][unit]") {
  using Half = std::vector<std::uint16_t>;
  const std::size_t count = 3000;
  const Half big(count, float_to_bfloat16(256)), one(count, float_to_bfloat16(1));
  CHECK(reduce(DType::kBfloat16, ReduceOp::kSum, std::vector<Half>{big, one, one}) ==
        Half(count, float_to_bfloat16(258)));
  const Half large(count, float_to_float16(60000));  // the sum is no float16, the average is
  CHECK(reduce(DType::kFloat16, ReduceOp::kAverage, std::vector<Half>{large, large}) == large);
  CHECK(reduce(DType::kFloat16, ReduceOp::kSum, std::vector<Half>{large, large}, 0.25) ==
        Half(count, float_to_float16(30000)));
}

TEST_CASE("bool is or and and over any number of ranks", "[runtime][unit]") {
  const std::vector<std::vector<std::uint8_t>> inputs{{0, 0, 2}, {0, 4, 1}, {0, 0, 255}};
  CHECK(reduce(DType::kBool, ReduceOp::kSum, inputs) == std::vector<std::uint8_t>{0, 1, 1});
  CHECK(reduce(DType::kBool, ReduceOp::kMin, inputs) == std::vector<std::uint8_t>{0, 0, 1});
}

namespace {

/// As Python computes it: exact, truncated toward zero, and limited to the range of T.
template <class T>
std::vector<T> scaled_sums(const std::vector<std::vector<T>>& inputs, double factor, double divisor) {
  std::vector<T> result;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    double sum = 0;
    for (const auto& input : inputs) sum += static_cast<double>(input[i]);
    const double exact = std::trunc(sum * factor / divisor);
    result.push_back(
        static_cast<T>(std::clamp<double>(exact, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
  }
  return result;
}

template <class T>
void check_short_integers(DType dtype) {
  const std::size_t ranks = GENERATE(1u, 2u, 3u, 8u), count = GENERATE(1u, 33u, 5003u);
  std::mt19937 random(7);
  std::vector<std::vector<T>> inputs(ranks, std::vector<T>(count));
  for (auto& input : inputs) {
    for (T& value : input) value = static_cast<T>(random());
  }
  for (auto& input : inputs) input[0] = std::numeric_limits<T>::max();  // their sum does not fit
  const auto size = static_cast<double>(ranks);
  CHECK(reduce(dtype, ReduceOp::kAverage, inputs) == scaled_sums(inputs, 1, size));
  CHECK(reduce(dtype, ReduceOp::kAverage, inputs, 1, 3) == scaled_sums(inputs, 3, size));
  CHECK(reduce(dtype, ReduceOp::kSum, inputs, 1, 0.5) == scaled_sums(inputs, 0.5, 1));
  std::vector<T> wrapped(count);
  for (const auto& input : inputs) {
    for (std::size_t i = 0; i < count; ++i) wrapped[i] = static_cast<T>(wrapped[i] + input[i]);
  }
  CHECK(reduce(dtype, ReduceOp::kSum, inputs) == wrapped);
}

}  // namespace

TEST_CASE("averages and scaled sums of short integers do not wrap, plain sums do", "[runtime][unit]") {
  CHECK(reduce(DType::kUint8, ReduceOp::kAverage, std::vector<std::vector<std::uint8_t>>{{200}, {100}}) ==
        std::vector<std::uint8_t>{150});
  SECTION("uint8") {
    check_short_integers<std::uint8_t>(DType::kUint8);
  }
  SECTION("int8") {
    check_short_integers<std::int8_t>(DType::kInt8);
  }
  SECTION("uint16") {
    check_short_integers<std::uint16_t>(DType::kUint16);
  }
  SECTION("int16") {
    check_short_integers<std::int16_t>(DType::kInt16);
  }
}

TEST_CASE("a prescaled short integer is limited to its range", "[runtime][unit]") {
  const std::vector<std::vector<std::uint8_t>> inputs{{200, 10}, {100, 20}};
  CHECK(reduce(DType::kUint8, ReduceOp::kAverage, inputs, 2, 1) == std::vector<std::uint8_t>{(255 + 200) / 2, 30});
}
