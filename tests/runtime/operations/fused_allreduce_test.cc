#include "runtime/operations/fused_allreduce.hpp"

#include <array>
#include <numeric>

#include "runtime/collectives/allreduce_stages.hpp"
#include "runtime/collectives/half.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

EngineTimeline off{std::make_shared<Timeline>(0, std::vector<std::string>()), 0};

/// One rank's allreduce, remembered.
struct OneRank {
  std::vector<Call> calls;

  Status operator()(const Call& call) {
    calls.push_back(call);
    AllreduceStages(call, 1).finish();
    return {};
  }
};

constexpr std::size_t kMost = 1u << 20;
const std::string kName = "x";

}  // namespace

TEST_CASE("tensors are one call, scaled once, and come back to their places", "[runtime][unit]") {
  FusionBuffer buffer(nullptr);
  OneRank rank;
  std::array<std::int32_t, 3> a{1, 2, 3}, a_out{};
  std::array<std::int32_t, 2> b{10, 20};
  const std::array<FusedTensor, 2> tensors{{{&kName, &a, &a_out, 3}, {&kName, &b, &b, 2}}};
  const FusionKey key{DType::kInt32, DType::kInt32, ReduceOp::kSum, 3, 0.5, {}};
  REQUIRE(run_fused(std::ref(rank), off, buffer, key, tensors, kMost).ok());
  CHECK(a_out == std::array<std::int32_t, 3>{1, 3, 4});
  CHECK(a == std::array<std::int32_t, 3>{1, 2, 3});
  CHECK(b == std::array<std::int32_t, 2>{15, 30});
  REQUIRE(rank.calls.size() == 1);
  CHECK(rank.calls[0].count == 5);
  CHECK(rank.calls[0].input == rank.calls[0].output);
  CHECK(rank.calls[0].prescale == 3);
  CHECK(rank.calls[0].postscale == 0.5);
}

TEST_CASE("compressed values are scaled where they stay in range", "[runtime][unit]") {
  FusionBuffer buffer(nullptr);
  OneRank rank;
  std::array<float, 2> values{60000, 3};
  const FusedTensor tensor{&kName, &values, &values, 2};
  FusionKey key{DType::kFloat32, DType::kFloat16, ReduceOp::kSum, 0.5, 4, {}};
  REQUIRE(run_fused(std::ref(rank), off, buffer, key, {&tensor, 1}, kMost).ok());
  CHECK(values == std::array<float, 2>{120000, 6});  // float16 ends at 65504
  CHECK(rank.calls[0].dtype == DType::kFloat16);
  CHECK(rank.calls[0].prescale == 1);
  CHECK(rank.calls[0].postscale == 1);
  values = {60000, 3};
  key.postscale = 0.25;
  REQUIRE(run_fused(std::ref(rank), off, buffer, key, {&tensor, 1}, kMost).ok());
  CHECK(values == std::array<float, 2>{7500, 0.375});
  CHECK(rank.calls[1].postscale == 0.25);
}

TEST_CASE("a compressed tensor that is larger than the buffer goes in pieces", "[runtime][unit]") {
  FusionBuffer buffer(nullptr);
  OneRank rank;
  std::vector<double> values(10), expected(10);
  std::iota(values.begin(), values.end(), 1.0);
  expected = values;
  const FusedTensor tensor{&kName, values.data(), values.data(), values.size()};
  const FusionKey key{DType::kFloat64, DType::kBfloat16};
  REQUIRE(run_fused(std::ref(rank), off, buffer, key, {&tensor, 1}, 8).ok());
  CHECK(values == expected);
  std::vector<std::size_t> counts;
  for (const Call& call : rank.calls) counts.push_back(call.count);
  CHECK(counts == std::vector<std::size_t>{4, 4, 2});
}

TEST_CASE("a failure is the call's, and leaves the outputs alone", "[runtime][unit]") {
  FusionBuffer buffer(nullptr);
  std::array<float, 2> in{1, 2}, out{};
  const std::array<FusedTensor, 2> tensors{{{&kName, &in, &out, 1}, {&kName, &in[1], &out[1], 1}}};
  const Status status = run_fused([](const Call&) { return Status(Errc::kTimeout, "slow"); }, off, buffer,
                                  {DType::kFloat32, DType::kFloat32}, tensors, kMost);
  CHECK(status.message() == "slow");
  CHECK(out == std::array<float, 2>{});
}

TEST_CASE("the buffer grows and is kept", "[runtime][unit]") {
  FusionBuffer buffer(nullptr);
  std::byte* const small = buffer.room(10);
  small[9] = std::byte{1};
  CHECK(buffer.room(10) == small);
  CHECK(buffer.room(3) == small);
  buffer.room(1000)[999] = std::byte{1};
}
