#include "runtime/collectives/shm/allreduce.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/reduction_cases.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

namespace {

Bytes allreduce_of(Channels& channels, const ReductionCase& c, const Bytes& input) {
  Bytes output = c.in_place ? input : Bytes(input.size());
  allreduce(channels, {.kind = Kind::kAllreduce,
                       .dtype = c.dtype,
                       .op = c.op,
                       .prescale = c.prescale,
                       .postscale = c.postscale,
                       .input = c.in_place ? output.data() : input.data(),
                       .output = output.data(),
                       .count = c.count});
  return output;
}

/// Every rank's result of every case has the bits of the reduction in rank order, in place and not.
void check_cases(const Layout& layout, const std::vector<ReductionCase>& cases, Patience patience = {},
                 std::optional<Algorithm> algorithm = {}) {
  const int size = layout.size();
  const std::vector<ReductionData> data = data_of(cases, size);
  const auto errors = run_threads(
      layout,
      [&](Channels& channels) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
          ReductionCase c = cases[i];
          for (const bool in_place : {false, true}) {
            c.in_place = in_place;
            const Bytes output =
                allreduce_of(channels, c, data[i].inputs[static_cast<std::size_t>(channels.group.rank())]);
            if (!same_bytes(output, data[i].result)) throw std::runtime_error("case " + std::to_string(i));
          }
        }
      },
      patience, algorithm);
  CHECK(errors == no_errors(size));
}

}  // namespace

TEST_CASE("every dtype and reduction has the bits of a reduction in rank order, small and large", "[runtime][unit]") {
  const int size = GENERATE(2, 3, 5);
  const Algorithm algorithm = GENERATE(kOneStep, kPipeline);
  std::vector<ReductionCase> cases;
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (const ReduceOp op : kOps) {
      if (static_cast<DType>(dtype) == DType::kBool && op == ReduceOp::kAverage) continue;
      for (const std::size_t count : {1, 3, 17, 1000, 4097, 9001})
        cases.push_back({static_cast<DType>(dtype), op, count});
    }
  }
  check_cases(small_layout(size), cases, {}, algorithm);
}

TEST_CASE("tensors of all sizes with the sizes of a real segment", "[runtime][unit]") {
  const int size = GENERATE(2, 8);
  const Algorithm algorithm = GENERATE(from_range(kSharedMemoryAlgorithms));
  std::vector<ReductionCase> cases;
  for (const DType dtype : {DType::kUint8, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    for (const std::size_t count : {4095, 4096, 100003}) cases.push_back({dtype, ReduceOp::kSum, count});
  }
  for (const DType dtype : {DType::kFloat64, DType::kBfloat16})
    cases.push_back({dtype, ReduceOp::kMax, (1u << 20) + 1});  // an output that may be streamed
  check_cases(Layout(size), cases, {}, algorithm);
}

TEST_CASE("scaling is part of the reduction", "[runtime][unit]") {
  check_cases(small_layout(3), {{DType::kFloat32, ReduceOp::kSum, 5000, 0.5, 3},
                                {DType::kBfloat16, ReduceOp::kAverage, 5000, 3, 1},
                                {DType::kInt32, ReduceOp::kSum, 5000, 0.25, 1},
                                {DType::kFloat64, ReduceOp::kMax, 11, 1, 7}});
}

TEST_CASE("many operations of mixed sizes in a row, looking and sleeping", "[runtime][unit]") {
  const int size = GENERATE(2, 4);
  const Patience patience = GENERATE(Patience{}, Patience{std::chrono::microseconds(50), 0}, Patience{{}, 3});
  std::vector<ReductionCase> cases;
  for (std::size_t i = 0; i < 300; ++i) cases.push_back({DType::kInt64, ReduceOp::kSum, 1 + i * 37 % 3001});
  check_cases(small_layout(size), cases, patience);
}

TEST_CASE("an allreduce tells its stage", "[runtime][unit]") {
  std::string stage;
  const auto errors = run_threads(small_layout(2), [&](Channels& channels) {
    float value = 1;
    Call call{.dtype = DType::kFloat32, .input = &value, .output = &value, .count = 1};
    if (channels.group.rank() == 0) call.on_stage = [&](const char* name, const char*) { stage = name; };
    allreduce(channels, call);
  });
  CHECK(errors == no_errors(2));
  CHECK(stage == "SHM_ALLREDUCE");
}
