#include "runtime/collectives/hierarchical/exchanges/host_reduction.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/host_inputs.hpp"

using namespace runjob::runtime;

namespace {

std::vector<Bytes> inputs_of(const Call& call, int size) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(exact_input(call.dtype, call.count, rank));
  return inputs;
}

}  // namespace

TEST_CASE("host after host gives the sum of all, in any dtype", "[runtime][unit]") {
  for (const Call& call : reductions({1, 1000, 5003})) {
    const HostReduction reduction(call, 5);
    if (!reduction.may_round()) continue;
    const std::vector<Bytes> inputs = inputs_of(call, 5);
    Bytes partial(inputs[0].size());
    const std::vector<const void*> first{inputs[0].data(), inputs[1].data()}, second{inputs[2].data()},
        third{inputs[3].data(), inputs[4].data()};
    reduction.add(partial.data(), nullptr, first, call.count, false);
    reduction.add(partial.data(), partial.data(), second, call.count, false);
    reduction.add(partial.data(), partial.data(), third, call.count, true);
    INFO(to_string(call.dtype) << " " << to_string(call.op) << " " << call.count);
    CHECK(partial == reduced(call, 5));
  }
}

TEST_CASE("sums that travel wide are finished once", "[runtime][unit]") {
  for (Call call : reductions({3, 5003})) {
    const bool scales = call.dtype == DType::kFloat32 || call.dtype == DType::kBfloat16;
    if (scales) call.prescale = 0.5, call.postscale = 2;
    const std::vector<Bytes> inputs = inputs_of(call, 4);
    const HostReduction reduction(call, 4);
    Bytes lower(call.count * size_of(reduction.wide())), upper(lower.size()), output(inputs[0].size());
    const std::vector<const void*> first{inputs[0].data(), inputs[1].data()},
        second{inputs[2].data(), inputs[3].data()};
    reduction.begin(lower.data(), first, call.count);
    reduction.begin(upper.data(), second, call.count);
    reduction.join(upper.data(), lower.data(), upper.data(), call.count);
    reduction.finish(output.data(), upper.data(), call.count);
    INFO(to_string(call.dtype) << " " << to_string(call.op) << " " << call.count);
    CHECK(output == reduced(call, 4));
  }
}

TEST_CASE("16-bit floats are rounded once on each host", "[runtime][unit]") {
  const Call call{.dtype = DType::kBfloat16, .count = 1};
  const HostReduction reduction(call, 4);
  const std::uint16_t big = float_to_bfloat16(256), small = float_to_bfloat16(0.75F);
  std::uint16_t sum = 0;
  const std::vector<const void*> inputs{&big, &small, &small, &small};  // each alone would be lost
  reduction.add(&sum, nullptr, inputs, 1, false);
  CHECK(bfloat16_to_float(sum) == 258);
}

TEST_CASE("short integers that are averaged travel as int32", "[runtime][unit]") {
  const Call call{.dtype = DType::kInt8, .op = ReduceOp::kAverage, .prescale = 2, .count = 2};
  const HostReduction reduction(call, 2);
  CHECK_FALSE(reduction.may_round());
  CHECK(reduction.wide() == DType::kInt32);
  const std::int8_t lower[] = {100, 20}, upper[] = {50, -3};
  std::int8_t average[] = {0, 0};
  reduction.add(average, nullptr, std::vector<const void*>{lower, upper}, 2, true);
  CHECK(average[0] == (127 + 100) / 2);
  CHECK(average[1] == 17);
  CHECK(HostReduction({.dtype = DType::kInt8, .op = ReduceOp::kSum}, 2).may_round());
}
