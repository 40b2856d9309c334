#include "runtime/collectives/shm/direct_allreduce.hpp"

#include "runtime/collectives/shm/allreduce.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"
#include "tests/runtime/collectives/shm/reduction_cases.hpp"

using namespace runjob::runtime;

namespace {

/// How a rank's input and output lie to each other.
enum class Form { kInPlace, kApart, kInterior, kOutputOrdinary };

/// `heap`: null for ordinary memory. The ranks' places differ, since each has other memory besides.
Bytes allreduce_of(Channels& channels, SymmetricHeap* heap, const ReductionCase& c, const Bytes& values, Form form) {
  const std::size_t bytes = values.size(), before = form == Form::kInterior ? 24 : 0;
  const Bytes nothing(static_cast<std::size_t>(channels.group.rank()) * 5000 + 1), room(bytes + before);
  const Placed other(heap, nothing.data(), nothing.size());
  const Placed first(heap, room.data(), room.size());
  const Placed second(form == Form::kOutputOrdinary ? nullptr : heap, room.data(), room.size());
  std::byte* input = first.get() + before;
  std::byte* output = c.in_place ? input : second.get() + before;
  std::memcpy(input, values.data(), bytes);
  allreduce(channels, {.kind = Kind::kAllreduce,
                       .dtype = c.dtype,
                       .op = c.op,
                       .prescale = c.prescale,
                       .postscale = c.postscale,
                       .input = input,
                       .output = output,
                       .count = c.count});
  if (!c.in_place && std::memcmp(input, values.data(), bytes) != 0) throw std::runtime_error("the input has changed");
  return Bytes(output, output + bytes);
}

/// Every rank's result of every case has the bits of the reduction in rank order, which are the ring's.
void check_cases(const Layout& layout, const Placement& placement, const std::vector<ReductionCase>& cases,
                 const std::vector<Form>& forms) {
  const std::vector<ReductionData> data = data_of(cases, layout.size());
  const auto errors = run_placed(layout, placement, [&](Channels& channels, SymmetricHeap* heap) {
    for (const Form form : forms) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        ReductionCase c = cases[i];
        c.in_place = form == Form::kInPlace || form == Form::kInterior;
        const Bytes& input = data[i].inputs[static_cast<std::size_t>(channels.group.rank())];
        if (!same_bytes(allreduce_of(channels, heap, c, input, form), data[i].result))
          throw std::runtime_error("case " + std::to_string(i));
      }
    }
    const bool is_direct = placement.is_direct() && forms.back() != Form::kOutputOrdinary;
    if (used_no_ring_cell(channels) != is_direct) throw std::runtime_error("another path");
  });
  CHECK(errors == no_errors(layout.size()));
}

}  // namespace

TEST_CASE("directly, every dtype and reduction has the bits of a reduction in rank order", "[runtime][unit]") {
  const int size = GENERATE(2, 3, 8);
  const Placement placement = GENERATE(kSymmetric, kOrdinary, kMixed, kMixedWithoutCma);
  std::vector<ReductionCase> cases;
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (const ReduceOp op : kOps) {
      if (static_cast<DType>(dtype) == DType::kBool && op == ReduceOp::kAverage) continue;
      for (const std::size_t count : {4097, 9001}) cases.push_back({static_cast<DType>(dtype), op, count});
    }
  }
  check_cases(small_layout(size), placement, cases, {Form::kInPlace, Form::kApart});
}

TEST_CASE("directly, of all sizes, also from the middle of what was allocated", "[runtime][unit]") {
  const int size = GENERATE(2, 7);
  const Placement placement = GENERATE(kSymmetric, kOrdinary);
  std::vector<ReductionCase> cases;
  for (const DType dtype : {DType::kUint8, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    for (const std::size_t count : {4097, 100003, 300001}) cases.push_back({dtype, ReduceOp::kSum, count});
  }
  check_cases(small_layout(size), placement, cases, {Form::kInPlace, Form::kInterior, Form::kApart});
}

TEST_CASE("scaling is part of a direct reduction", "[runtime][unit]") {
  const Placement placement = GENERATE(kSymmetric, kOrdinary);
  check_cases(small_layout(3), placement,
              {{DType::kFloat32, ReduceOp::kSum, 5000, 0.5, 3},
               {DType::kBfloat16, ReduceOp::kAverage, 5000, 3, 1},
               {DType::kInt32, ReduceOp::kSum, 5000, 0.25, 1},
               {DType::kFloat64, ReduceOp::kMax, 1100, 1, 7}},
              {Form::kInPlace, Form::kApart});
}

TEST_CASE("an output that is ordinary memory goes through ring cells", "[runtime][unit]") {
  check_cases(small_layout(3), kSymmetric, {{DType::kInt64, ReduceOp::kSum, 9001}}, {Form::kOutputOrdinary});
}

TEST_CASE("direct and other operations of mixed sizes in a row, looking and sleeping", "[runtime][unit]") {
  const int size = GENERATE(2, 4);
  const Patience patience = GENERATE(Patience{}, Patience{std::chrono::microseconds(50), 0}, Patience{{}, 3});
  const Algorithm algorithm = GENERATE(kPipeline, kCma);
  const auto errors = run_heap_threads(
      small_layout(size), {.cma = algorithm == kCma, .algorithm = algorithm, .patience = patience}, [&](HeapRank rank) {
        for (std::size_t i = 0; i < 300; ++i) {
          const std::size_t count = 1 + i * 37 % 3001;
          const bool is_symmetric = i % 3 != 0 && (i % 7 != 0 || rank.rank() != 1);
          std::vector<std::int64_t> values(count, static_cast<std::int64_t>(i) + rank.rank());
          const Placed placed(is_symmetric ? &rank.heap : nullptr, values.data(), count * sizeof values[0]);
          allreduce(rank.channels,
                    {.dtype = DType::kInt64, .input = placed.get(), .output = placed.get(), .count = count});
          std::memcpy(values.data(), placed.get(), count * sizeof values[0]);
          const auto ranks = static_cast<std::int64_t>(size);
          const std::int64_t sum = ranks * static_cast<std::int64_t>(i) + ranks * (ranks - 1) / 2;
          if (values != std::vector<std::int64_t>(count, sum)) throw std::runtime_error("round " + std::to_string(i));
        }
      });
  CHECK(errors == no_errors(size));
}
