#include "runtime/collectives/shm/small_exchange.hpp"

#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

TEST_CASE("a short message lies beside its flag, a longer one in a cell", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels channels(segment.data(), layout, options_of(0));
  CHECK(channels.small.begin(56) == channels.group.own().flags[1].payload);
  channels.small.give();
  CHECK(channels.small.most_bytes() == 4096);
  CHECK(channels.small.begin(0) == nullptr);
  channels.small.give();
  CHECK(channels.group.own().flags[0].given == 2);
}

TEST_CASE("every message of every rank arrives whole, whoever has one", "[runtime][unit]") {
  const int size = GENERATE(2, 3, 6);
  const auto errors = run_threads(small_layout(size), [&](Channels& channels) {
    for (int round = 0; round < 3000; ++round) {
      const auto bytes_of = [&](int rank) {
        return static_cast<std::size_t>((round + rank) % 4 == 0 ? 0 : (round * 7 + rank) % 120);
      };
      const auto value_of = [&](int rank) { return static_cast<std::byte>(round + 31 * rank); };
      const std::size_t bytes = bytes_of(channels.group.rank());
      std::byte* room = channels.small.begin(bytes);
      for (std::size_t i = 0; i < bytes; ++i) room[i] = value_of(channels.group.rank());
      channels.small.give();
      for (int rank = 0; rank < size; ++rank) {
        const std::byte* message = channels.small.take(rank, bytes_of(rank));
        for (std::size_t i = 0; i < bytes_of(rank); ++i) {
          if (message[i] != value_of(rank)) throw std::runtime_error("round " + std::to_string(round));
        }
      }
    }
  });
  CHECK(errors == no_errors(size));
}
