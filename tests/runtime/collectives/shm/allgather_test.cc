#include "runtime/collectives/shm/allgather.hpp"

#include <numeric>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"

using namespace runjob::runtime;

namespace {

using Values = std::vector<std::int16_t>;

Values part(int rank, std::size_t count) {
  Values values(count);
  std::iota(values.begin(), values.end(), static_cast<std::int16_t>(1000 * rank));
  return values;
}

void gather(Channels& channels, const std::vector<std::size_t>& counts, SymmetricHeap* heap = nullptr) {
  Values expected;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const Values values = part(static_cast<int>(rank), counts[rank]);
    expected.insert(expected.end(), values.begin(), values.end());
  }
  const Values own = part(channels.group.rank(), counts[static_cast<std::size_t>(channels.group.rank())]);
  const Placed input(heap, own.data(), own.size() * sizeof own[0]);
  Values output(expected.size());
  allgather(channels, {.kind = Kind::kAllgather,
                       .dtype = DType::kInt16,
                       .input = own.empty() ? nullptr : input.get(),
                       .output = output.data(),
                       .count = own.size(),
                       .counts = counts});
  if (output != expected) throw std::runtime_error("a gather differs");
}

}  // namespace

TEST_CASE("an allgather concatenates parts of any sizes in rank order, empty ones too", "[runtime][unit]") {
  const Algorithm algorithm = GENERATE(from_range(kSharedMemoryAlgorithms));
  const auto body = [](Channels& channels) {
    for (int round = 0; round < 10; ++round) {
      gather(channels, {1, 1, 1});
      gather(channels, {0, 28, 29});
      gather(channels, {2048, 0, 0});
      gather(channels, {2049, 0, 7});
      gather(channels, {1, 30001, 12288});
      gather(channels, {0, 0, 40000});
    }
  };
  CHECK(run_threads(small_layout(3), body, {}, algorithm) == no_errors(3));
}

TEST_CASE("a large allgather writes its output past the caches", "[runtime][unit]") {
  const Algorithm algorithm = GENERATE(kStreamedOutput, kStreamed);
  const auto body = [](Channels& channels) { gather(channels, {500'001, 3, 300'000}); };
  CHECK(run_threads(small_layout(3), body, {}, algorithm) == no_errors(3));
}

TEST_CASE("an allgather directly, of symmetric and of ordinary memory", "[runtime][unit]") {
  const Placement placement = GENERATE(kSymmetric, kOrdinary, kMixed, kMixedWithoutCma);
  const auto errors = run_placed(small_layout(3), placement, [&](Channels& channels, SymmetricHeap* heap) {
    for (int round = 0; round < 5; ++round) {
      gather(channels, {2049, 0, 7}, heap);
      gather(channels, {1, 30001, 12288}, heap);
      gather(channels, {0, 0, 900000}, heap);
    }
    if (used_no_ring_cell(channels) != placement.is_direct()) throw std::runtime_error("another path");
    gather(channels, {1, 1, 1}, heap);
  });
  CHECK(errors == no_errors(3));
}
