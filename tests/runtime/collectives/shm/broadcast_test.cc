#include "runtime/collectives/shm/broadcast.hpp"

#include <stdexcept>

#include "runtime/collectives/shm/allreduce.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

TEST_CASE("a broadcast gives every rank the root's bytes, whatever came before", "[runtime][unit]") {
  const int size = GENERATE(2, 3, 5);
  const auto errors = run_threads(small_layout(size), [&](Channels& channels) {
    for (int round = 0; round < 40; ++round) {
      for (const std::size_t count : {1, 56, 57, 4096, 4097, 50001}) {
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
  });
  CHECK(errors == no_errors(size));
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
