#include "runtime/collectives/hierarchical/host_memory.hpp"

#include <cstring>
#include <deque>
#include <filesystem>
#include <thread>

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/rounds/far_board.hpp"
#include "runtime/collectives/shm/memory/sharing.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_directory.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;

namespace {

WaitLimits limits(std::chrono::milliseconds time = std::chrono::seconds(60)) {
  return {std::chrono::steady_clock::now() + time};
}

Layout layout_for(const Topology& topology) {
  return Layout(topology.local_size(), 4096, 4096, FarBoard::bytes(topology.size()));
}

/// The memories of the ranks of `hosts`.
struct Ranks {
  explicit Ranks(const std::vector<int>& hosts) {
    for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
      topologies.emplace_back(rank, hosts);
      memories.emplace_back(topologies.back(), layout_for(topologies.back()));
      offers.push_back(memories.back().offer(directory.path()));
    }
  }

  runjob::TemporaryDirectory directory;
  std::deque<Topology> topologies;
  std::deque<HostMemory> memories;
  std::vector<std::string> offers;
};

}  // namespace

TEST_CASE("host memory: the ranks of a host have the same bytes, other hosts their own", "[runtime][net]") {
  Ranks ranks({0, 0, 0, 1, 1});
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 5; ++rank)
    threads.emplace_back(
        [&, rank] { ranks.memories[rank].join(ranks.offers[rank < 3 ? 0 : 3], rank < 3 ? 0 : 3, limits()); });
  for (std::thread& thread : threads) thread.join();
  const auto first_byte = [&](std::size_t rank) { return static_cast<char*>(ranks.memories[rank].data()); };
  CHECK(*first_byte(2) == 0);
  *first_byte(0) = 'a';
  *first_byte(4) = 'b';
  CHECK(std::string{*first_byte(1), *first_byte(2), *first_byte(3)} == "aab");
  CHECK(std::filesystem::is_empty(ranks.directory.path()));  // the leaders' sockets are gone
}

TEST_CASE("host memory: a rank that is alone has memory of its own, whose words are zero", "[runtime][unit]") {
  Ranks ranks({0, 1});
  ranks.memories[0].join("", 0, limits());
  const Layout layout = layout_for(ranks.topologies[0]);
  const auto* bytes = static_cast<const char*>(ranks.memories[0].data());
  const auto is_zero = [&](std::size_t first, std::size_t count) {
    return std::all_of(bytes + first, bytes + first + count, [](char byte) { return byte == 0; });
  };
  CHECK(is_zero(0, layout.cell(0, 0, 0)));
  CHECK(is_zero(layout.board(), FarBoard::words_bytes(2)));
}

TEST_CASE("host memory: only the leader of several ranks offers a socket", "[runtime][unit]") {
  const Ranks ranks({0, 0, 1});
  const auto offer = [&](std::size_t rank) { return decode_sharing_offer(ranks.offers[rank], 0); };
  CHECK_FALSE(offer(0).token.empty());
  for (const std::size_t rank : {1u, 2u}) {
    CHECK(offer(rank).refusal.empty());
    CHECK(offer(rank).path + offer(rank).name + offer(rank).token == "");
  }
}

TEST_CASE("host memory: a rank whose leader does not come in time gets an error", "[runtime][net]") {
  Ranks ranks({0, 0});
  try {
    ranks.memories[1].join(ranks.offers[0], 0, limits(std::chrono::milliseconds(20)));  // the leader hands nothing over
    FAIL("joined");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
  }
}
