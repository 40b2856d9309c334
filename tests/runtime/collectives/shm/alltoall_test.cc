#include "runtime/collectives/shm/alltoall.hpp"

#include <algorithm>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"

using namespace runjob::runtime;

namespace {

/// `counts[s][r]`: elements that rank s sends to rank r.
void exchange(Channels& channels, const std::vector<std::vector<std::size_t>>& counts, SymmetricHeap* heap = nullptr) {
  const auto own = static_cast<std::size_t>(channels.group.rank());
  const auto value = [](std::size_t from, std::size_t to, std::size_t i) {
    return static_cast<std::int32_t>(1'000'000 * from + 100'000 * to + i);
  };
  std::vector<std::int32_t> input, expected;
  Call call{.kind = Kind::kAlltoall, .dtype = DType::kInt32};
  for (std::size_t other = 0; other < counts.size(); ++other) {
    call.send_counts.push_back(counts[own][other]);
    call.counts.push_back(counts[other][own]);
    for (std::size_t i = 0; i < counts[own][other]; ++i) input.push_back(value(own, other, i));
    for (std::size_t i = 0; i < counts[other][own]; ++i) expected.push_back(value(other, own, i));
    call.largest_part = std::max(call.largest_part, *std::max_element(counts[other].begin(), counts[other].end()));
  }
  std::vector<std::int32_t> output(expected.size());
  const Placed placed(heap, input.data(), input.size() * sizeof input[0]);
  call.input = input.empty() ? nullptr : placed.get();
  call.output = output.empty() ? nullptr : output.data();
  call.count = input.size();
  alltoall(channels, call);
  if (output != expected) throw std::runtime_error("an exchange differs");
}

}  // namespace

TEST_CASE("an alltoall gives every rank its part of each, of any sizes, empty ones too", "[runtime][unit]") {
  const Algorithm algorithm = GENERATE(from_range(kSharedMemoryAlgorithms));
  const auto body = [](Channels& channels) {
    for (int round = 0; round < 10; ++round) {
      exchange(channels, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
      exchange(channels, {{0, 5, 0}, {0, 0, 0}, {7, 0, 3}});
      exchange(channels, {{341, 341, 341}, {341, 0, 341}, {1, 2, 341}});
      exchange(channels, {{0, 0, 342}, {0, 0, 0}, {0, 0, 0}});
      exchange(channels, {{5000, 1, 0}, {0, 0, 4999}, {2500, 2501, 2502}});
      exchange(channels, {{10000, 1, 0}, {0, 0, 9999}, {5000, 5001, 5002}});
    }
  };
  CHECK(run_threads(small_layout(3), body, {}, algorithm) == no_errors(3));
}

TEST_CASE("a large alltoall writes its output past the caches", "[runtime][unit]") {
  const Algorithm algorithm = GENERATE(kStreamedOutput, kStreamed);
  const auto body = [](Channels& channels) { exchange(channels, {{300'001, 100'003}, {100'005, 200'005}}); };
  CHECK(run_threads(small_layout(2), body, {}, algorithm) == no_errors(2));
}

TEST_CASE("one rank's alltoall copies", "[runtime][unit]") {
  CHECK(run_threads(small_layout(1), [](Channels& channels) { exchange(channels, {{20000}}); }) == no_errors(1));
}

TEST_CASE("an alltoall directly, of symmetric and of ordinary memory", "[runtime][unit]") {
  const Placement placement = GENERATE(kSymmetric, kOrdinary, kMixed, kMixedWithoutCma);
  const auto errors = run_placed(small_layout(3), placement, [&](Channels& channels, SymmetricHeap* heap) {
    for (int round = 0; round < 5; ++round) {
      exchange(channels, {{0, 0, 342}, {0, 0, 0}, {0, 0, 0}}, heap);
      exchange(channels, {{10000, 1, 0}, {0, 0, 9999}, {5000, 5001, 5002}}, heap);
    }
    if (used_no_ring_cell(channels) != placement.is_direct()) throw std::runtime_error("another path");
    exchange(channels, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, heap);
  });
  CHECK(errors == no_errors(3));
}
