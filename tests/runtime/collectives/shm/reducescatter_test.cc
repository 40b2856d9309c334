#include "runtime/collectives/shm/reducescatter.hpp"

#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"

using namespace runjob::runtime;

namespace {

float input_value(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 3) % 64);
}

void scatter(Channels& channels, const std::vector<std::size_t>& counts, double prescale = 1, double postscale = 1,
             SymmetricHeap* heap = nullptr) {
  const int size = channels.group.size(), own = channels.group.rank();
  std::size_t count = 0, first = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (static_cast<int>(rank) < own) first += counts[rank];
    count += counts[rank];
  }
  std::vector<float> input(count), output(counts[static_cast<std::size_t>(own)]);
  for (std::size_t i = 0; i < count; ++i) input[i] = input_value(own, i);
  const Placed placed(heap, input.data(), count * sizeof(float));
  reducescatter(channels, {.kind = Kind::kReducescatter,
                           .dtype = DType::kFloat32,
                           .op = ReduceOp::kSum,
                           .prescale = prescale,
                           .postscale = postscale,
                           .input = placed.get(),
                           .output = output.data(),
                           .count = count,
                           .counts = counts});
  for (std::size_t i = 0; i < output.size(); ++i) {
    float expected = 0;
    for (int rank = 0; rank < size; ++rank) expected += input_value(rank, first + i) * static_cast<float>(prescale);
    if (output[i] != expected * static_cast<float>(postscale)) throw std::runtime_error("a scatter differs");
  }
}

}  // namespace

TEST_CASE("a reducescatter leaves every rank its part, of any sizes, empty ones too", "[runtime][unit]") {
  const Algorithm algorithm = GENERATE(from_range(kSharedMemoryAlgorithms));
  const auto body = [](Channels& channels) {
    for (int round = 0; round < 10; ++round) {
      scatter(channels, {1, 0, 0});
      scatter(channels, {5, 5, 4});
      scatter(channels, {342, 341, 341});
      scatter(channels, {342, 342, 341});
      scatter(channels, {10001, 10000, 10000}, 2, 0.5);
      scatter(channels, {1001, 1000, 3000});
      scatter(channels, {0, 30000, 1});
    }
  };
  CHECK(run_threads(small_layout(3), body, {}, algorithm) == no_errors(3));
}

TEST_CASE("a reducescatter directly, of symmetric and of ordinary memory", "[runtime][unit]") {
  const Placement placement = GENERATE(kSymmetric, kOrdinary, kMixed, kMixedWithoutCma);
  const auto errors = run_placed(small_layout(3), placement, [&](Channels& channels, SymmetricHeap* heap) {
    for (int round = 0; round < 5; ++round) {
      scatter(channels, {342, 342, 341}, 1, 1, heap);
      scatter(channels, {10001, 10000, 10000}, 2, 0.5, heap);
      scatter(channels, {0, 130000, 1}, 1, 1, heap);
    }
    if (used_no_ring_cell(channels) != placement.is_direct()) throw std::runtime_error("another path");
    scatter(channels, {1, 0, 0}, 1, 1, heap);
  });
  CHECK(errors == no_errors(3));
}
