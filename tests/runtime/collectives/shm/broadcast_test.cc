#include "runtime/collectives/shm/broadcast.hpp"

#include <stdexcept>

#include "runtime/collectives/shm/allreduce.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"

using namespace runjob::runtime;

TEST_CASE("a broadcast gives every rank the root's bytes, whatever came before", "[runtime][unit]") {
  const int size = GENERATE(2, 3, 5);
  const Algorithm algorithm = GENERATE(from_range(kSharedMemoryAlgorithms));
  const auto body = [&](Channels& channels) {
    for (int round = 0; round < 20; ++round) {
      for (const std::size_t count : {1, 56, 57, 4096, 4097, 30001, 70001}) {
        const int root = (round + static_cast<int>(count)) % size;
        const auto value = static_cast<std::uint8_t>(round * 7 + root);
        std::vector<std::uint8_t> data(count, channels.group.rank() == root ? value : 0);
        broadcast(channels, {.kind = Kind::kBroadcast, .root = root, .output = data.data(), .count = count});
        if (data != std::vector<std::uint8_t>(count, value)) throw std::runtime_error("round " + std::to_string(round));
      }
      std::vector<std::int32_t> sum(static_cast<std::size_t>(1 + round * 100), 1);
      allreduce(channels, {.dtype = DType::kInt32, .input = sum.data(), .output = sum.data(), .count = sum.size()});
      if (sum != std::vector<std::int32_t>(sum.size(), size)) throw std::runtime_error("sum " + std::to_string(round));
    }
  };
  CHECK(run_threads(small_layout(size), body, {}, algorithm) == no_errors(size));
}

TEST_CASE("a large broadcast writes its output past the caches", "[runtime][unit]") {
  const Algorithm algorithm = GENERATE(kStreamedOutput, kStreamed);
  const auto body = [&](Channels& channels) {
    std::vector<std::uint8_t> data((1u << 20) + 77), expected(data.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::uint8_t>(i * 7 + i / 4096);
    if (channels.group.rank() == 1) data = expected;
    broadcast(channels, {.kind = Kind::kBroadcast, .root = 1, .output = data.data() + 1, .count = data.size() - 1});
    expected[0] = data[0];
    if (data != expected) throw std::runtime_error("a broadcast differs");
  };
  CHECK(run_threads(small_layout(2), body, {}, algorithm) == no_errors(2));
}

TEST_CASE("a root may be steps ahead, but not further than there is room", "[runtime][unit]") {
  const auto errors = run_threads(small_layout(2), [&](Channels& channels) {
    for (int round = 0; round < 2000; ++round) {
      int value = channels.group.rank() == 0 ? round : -1;
      broadcast(channels, {.kind = Kind::kBroadcast, .dtype = DType::kInt32, .output = &value, .count = 1});
      if (value != round) throw std::runtime_error(std::to_string(value) + " in round " + std::to_string(round));
    }
  });
  CHECK(errors == no_errors(2));
}

TEST_CASE("a broadcast directly, of symmetric and of ordinary memory", "[runtime][unit]") {
  const Placement placement = GENERATE(kSymmetric, kOrdinary, kMixed, kMixedWithoutCma);
  const auto errors = run_placed(small_layout(3), placement, [&](Channels& channels, SymmetricHeap* heap) {
    for (int root = 0; root < 3; ++root) {
      for (const std::size_t count : {4097, 50001, 3000000}) {
        std::vector<std::uint8_t> data(count, channels.group.rank() == root ? 7 : 0);
        const Placed placed(heap, data.data(), count);
        broadcast(channels, {.kind = Kind::kBroadcast, .root = root, .output = placed.get(), .count = count});
        std::memcpy(data.data(), placed.get(), count);
        if (data != std::vector<std::uint8_t>(count, 7)) throw std::runtime_error("root " + std::to_string(root));
      }
      if (used_no_ring_cell(channels) != placement.is_direct() && channels.group.rank() == root)
        throw std::runtime_error("another path");
    }
  });
  CHECK(errors == no_errors(3));
}
