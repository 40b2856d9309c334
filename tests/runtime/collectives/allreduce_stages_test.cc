#include "runtime/collectives/allreduce_stages.hpp"

#include "runtime/collectives/half.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("numbers are reduced in the output itself, prescaled before and averaged after", "[runtime][unit]") {
  const float in[] = {1, 2};
  float out[] = {0, 0};
  const Call call{.kind = Kind::kAllreduce,
                  .dtype = DType::kFloat32,
                  .op = ReduceOp::kAverage,
                  .prescale = 2,
                  .postscale = 10,
                  .input = in,
                  .output = out,
                  .count = 2};
  AllreduceStages stages(call, 4);
  CHECK(stages.data() == out);
  CHECK(stages.bytes() == 8);
  CHECK(out[1] == 4);
  stages.finish();
  CHECK(out[0] == 5);
  CHECK(out[1] == 10);
  CHECK(in[1] == 2);
}

TEST_CASE("16-bit floats are exchanged as float32 and rounded once", "[runtime][unit]") {
  // 1 + 2^-9 is no bfloat16; as a sum of two halves of it, it must not be rounded before the end.
  std::uint16_t value[] = {float_to_bfloat16(1)};
  const Call call{.kind = Kind::kAllreduce,
                  .dtype = DType::kBfloat16,
                  .op = ReduceOp::kSum,
                  .prescale = 1 + 0x1p-9,
                  .postscale = 512,
                  .input = value,
                  .output = value,
                  .count = 1};
  AllreduceStages stages(call, 2);
  REQUIRE(stages.dtype() == DType::kFloat32);
  CHECK(stages.data() != value);
  CHECK(*static_cast<float*>(stages.data()) == 1 + 0x1p-9F);
  *static_cast<float*>(stages.data()) -= 1;
  stages.finish();
  CHECK(bfloat16_to_float(value[0]) == 1);
}

TEST_CASE("an allreduce in place leaves the input alone until it is reduced", "[runtime][unit]") {
  std::int64_t values[] = {9};
  const Call call{.kind = Kind::kAllreduce,
                  .dtype = DType::kInt64,
                  .op = ReduceOp::kSum,
                  .input = values,
                  .output = values,
                  .count = 1};
  AllreduceStages stages(call, 2);
  CHECK(values[0] == 9);
  stages.finish();
  CHECK(values[0] == 9);
}

TEST_CASE("short integers that are averaged are exchanged as int32", "[runtime][unit]") {
  const std::uint8_t in[] = {200, 3};
  std::uint8_t out[] = {0, 0};
  Call call{.kind = Kind::kAllreduce,
            .dtype = DType::kUint8,
            .op = ReduceOp::kAverage,
            .prescale = 2,
            .input = in,
            .output = out,
            .count = 2};
  AllreduceStages stages(call, 2);
  REQUIRE(stages.dtype() == DType::kInt32);
  CHECK(stages.bytes() == 8);
  auto* sums = static_cast<std::int32_t*>(stages.data());
  CHECK(sums[0] == 255);  // limited by the range of uint8
  CHECK(sums[1] == 6);
  sums[0] += 205;
  sums[1] += 1000;
  stages.finish();
  CHECK(out[0] == 230);
  CHECK(out[1] == 255);
  CHECK(in[0] == 200);
  call.op = ReduceOp::kSum;
  CHECK(AllreduceStages(call, 2).dtype() == DType::kUint8);
}
