#include "runtime/collectives/half_reduction.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "runtime/collectives/half.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

using Halves = std::vector<std::uint16_t>;

float widen_one(DType half, std::uint16_t bits) {
  return half == DType::kFloat16 ? float16_to_float(bits) : bfloat16_to_float(bits);
}

float combine(ReduceOp op, float a, float b) {
  if (op == ReduceOp::kSum || op == ReduceOp::kAverage) return a + b;
  if (op == ReduceOp::kProduct) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::nanf("");
  return (op == ReduceOp::kMin ? a < b : a > b) ? a : b;
}

/// Any bits: infinities, NaNs and subnormals among them.
std::vector<Halves> random_inputs(std::size_t ranks, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(ranks + count));
  std::vector<Halves> inputs(ranks, Halves(count));
  for (Halves& input : inputs) {
    for (std::uint16_t& bits : input) bits = static_cast<std::uint16_t>(random());
  }
  return inputs;
}

std::vector<const void*> pointers_to(const std::vector<Halves>& inputs) {
  std::vector<const void*> pointers;
  for (const Halves& input : inputs) pointers.push_back(input.data());
  return pointers;
}

Halves expected(DType half, ReduceOp op, const std::vector<Halves>& inputs, float factor) {
  Halves out;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    float sum = widen_one(half, inputs[0][i]);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) sum = combine(op, sum, widen_one(half, inputs[rank][i]));
    out.push_back(half == DType::kFloat16 ? float_to_float16(sum * factor) : float_to_bfloat16(sum * factor));
  }
  return out;
}

bool are_equal(DType half, const Halves& a, const Halves& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float left = widen_one(half, a[i]), right = widen_one(half, b[i]);
    if (a[i] != b[i] && !(std::isnan(left) && std::isnan(right))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("16-bit floats of any number of ranks are reduced in float32 and rounded once", "[runtime][unit]") {
  const DType half = GENERATE(DType::kFloat16, DType::kBfloat16);
  const ReduceOp op = GENERATE(ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct);
  const std::size_t ranks = GENERATE(1u, 2u, 3u, 7u);
  const std::size_t count = GENERATE(0u, 1u, 7u, 8u, 31u, 32u, 41u, 1027u);
  const float factor = GENERATE(1.0F, 0.25F);
  const auto inputs = random_inputs(ranks, count);
  const Halves right = expected(half, op, inputs, factor);
  for (const InstructionSet set : instruction_sets()) {
    INFO(to_string(half) << " " << to_string(op) << " " << to_string(set));
    Halves out(count);
    half_reduction(half, op, set)(out.data(), pointers_to(inputs).data(), ranks, count, factor);
    REQUIRE(are_equal(half, out, right));
    auto in_place = inputs;
    half_reduction(half, op, set)(in_place.back().data(), pointers_to(in_place).data(), ranks, count, factor);
    REQUIRE(are_equal(half, in_place.back(), right));
  }
}

TEST_CASE("a pair of them is what two ranks have", "[runtime][unit]") {
  const DType half = GENERATE(DType::kFloat16, DType::kBfloat16);
  const auto inputs = random_inputs(2, 100);
  for (const InstructionSet set : instruction_sets()) {
    Halves out(100);
    half_pair_reduction(half, ReduceOp::kProduct, set)(out.data(), inputs[0].data(), inputs[1].data(), out.size());
    CHECK(are_equal(half, out, expected(half, ReduceOp::kProduct, inputs, 1)));
  }
}
