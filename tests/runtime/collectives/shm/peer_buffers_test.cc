#include "runtime/collectives/shm/peer_buffers.hpp"

#include <algorithm>
#include <set>
#include <sys/mman.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"

using namespace runjob::runtime;
using Offer = PeerBuffers::Offer;
using Route = PeerBuffers::Route;

namespace {

constexpr std::size_t kBytes = 5000;
constexpr std::size_t kLarge = 128u << 10;  // may be read
constexpr std::size_t kOutput = 1u << 20;   // may be written past the caches

Route route_of(Channels& channels, const Offer& offer) {
  Route taken = Route::kRing;  // or in one step
  channels.peers.run(
      offer, [](CopyFunction) {}, [](Copies) {}, [&](Route route) { taken = route; });
  return taken;
}

void require_route(Channels& channels, const Offer& offer, Route route, const char* what) {
  if (route_of(channels, offer) != route) throw std::runtime_error(what);
}

Offer in_place(void* buffer, std::size_t bytes = kBytes) {
  return {.bytes = bytes, .input = buffer, .input_bytes = bytes, .output = buffer, .output_bytes = bytes};
}

Offer input_only(Kind kind, void* buffer) {
  return {.kind = kind, .bytes = kBytes, .input = buffer, .input_bytes = kBytes};
}

}  // namespace

TEST_CASE("buffers are reached directly when all are symmetric", "[runtime][unit]") {
  const auto errors = run_heap_threads(small_layout(3), HeapOptions{}, [](HeapRank rank) {
    std::vector<std::byte> ordinary(kBytes);
    auto* mine = rank.make<std::byte>(kBytes);
    std::byte* on_some = rank.rank() == 1 ? ordinary.data() : mine;
    Channels& channels = rank.channels;
    require_route(channels, in_place(mine), Route::kWrite, "an allreduce in place");
    require_route(channels, in_place(on_some), Route::kRing, "an allreduce, ordinary on one");
    require_route(channels, input_only(Kind::kAllgather, mine), Route::kRead, "an allgather");
    require_route(channels, input_only(Kind::kAllgather, on_some), Route::kRing, "an allgather, ordinary on one");
    Offer broadcast = in_place(mine);
    broadcast.kind = Kind::kBroadcast;
    require_route(channels, broadcast, Route::kWrite, "a broadcast");
    Offer apart = in_place(mine);
    apart.output = ordinary.data();
    require_route(channels, apart, Route::kRing, "an output that is ordinary");
    Offer empty = input_only(Kind::kAllgather, rank.rank() == 1 ? nullptr : mine);
    empty.input_bytes = rank.rank() == 1 ? 0 : kBytes;
    require_route(channels, empty, Route::kRead, "no input on one");
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("a rank that has mapped no windows yet reads others' buffers from the second message on", "[runtime][unit]") {
  const auto errors = run_heap_threads(small_layout(2), HeapOptions{}, [](HeapRank rank) {
    Offer offer = input_only(Kind::kAllgather, nullptr);
    offer.input_bytes = 0;  // rank 1 has nothing to give
    if (rank.rank() == 0) offer = input_only(Kind::kAllgather, rank.make<std::byte>(kBytes));
    require_route(rank.channels, offer, Route::kRing, "first");
    require_route(rank.channels, offer, Route::kRead, "second");
  });
  CHECK(errors == no_errors(2));
}

TEST_CASE("without symmetric memory and CMA there is the ring", "[runtime][unit]") {
  const auto errors = run_threads(small_layout(2), [](Channels& channels) {
    std::vector<std::byte> ordinary(kLarge);
    require_route(channels, in_place(ordinary.data(), kBytes), Route::kRing, "small");
    require_route(channels, in_place(ordinary.data(), kLarge), Route::kRing, "large");
  });
  CHECK(errors == no_errors(2));
}

TEST_CASE("ordinary memory is read when every rank may", "[runtime][unit]") {
  const bool all_may = GENERATE(true, false);
  const auto options = [&](int rank) { return HeapOptions{.cma = all_may || rank != 1, .way = Way::kRead}; };
  const auto errors = run_heap_threads(small_layout(3), options, [&](HeapRank rank) {
    std::vector<std::byte> ordinary(kLarge);
    const Route route = all_may ? Route::kRead : Route::kRing;
    for (int i = 0; i < 3; ++i) require_route(rank.channels, in_place(ordinary.data(), kLarge), route, "ordinary");
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("ways are tried out, and all ranks go the same one", "[runtime][unit]") {
  constexpr int kMessages = 1500;  // more than until all are tried again
  const auto [bytes, output_bytes, tried] = GENERATE(table<std::size_t, std::size_t, std::set<std::string>>(
      {{kBytes, 0, {"one step", "streamed one step", "slots", "streamed slots"}},
       {kLarge, kOutput - 1, {"slots", "streamed slots", "read"}},
       {kLarge, kOutput, {"slots", "streamed slots", "read", "streamed output"}}}));
  std::vector<std::vector<std::string>> ways(3);
  const auto name = [](CopyFunction copy) { return copy == &streaming_copy ? "streamed " : ""; };
  const auto errors =
      run_heap_threads(small_layout(3), {.cma = true}, [&, size = bytes, last = output_bytes](HeapRank rank) {
        std::vector<std::byte> ordinary(kLarge), output(last);
        auto& own = ways[static_cast<std::size_t>(rank.rank())];
        Offer offer = in_place(ordinary.data(), size);
        offer.copied_out = output;
        for (int i = 0; i < kMessages; ++i) {
          rank.channels.peers.run(
              offer, [&](CopyFunction copy) { own.push_back(std::string(name(copy)) + "one step"); },
              [&](Copies copies) {
                own.push_back(copies.out == &streaming_copy ? "streamed output"
                                                            : std::string(name(copies.in)) + "slots");
              },
              [&](Route) { own.push_back("read"); });
        }
      });
  CHECK(errors == no_errors(3));
  for (const std::string& way : tried) {
    CAPTURE(way);
    CHECK(std::count(ways[0].begin(), ways[0].end(), way) >= 2 * RouteTable::kTries);
  }
  CHECK(std::set(ways[0].begin(), ways[0].end()) == tried);
  CHECK(ways[1] == ways[0]);
  CHECK(ways[2] == ways[0]);
}

TEST_CASE("bytes come from where they are, and splits with them", "[runtime][unit]") {
  const Placement placement = GENERATE(kSymmetric, kOrdinary);
  const auto errors = run_placed(small_layout(3), placement, [](Channels& channels, SymmetricHeap* heap) {
    const int own = channels.group.rank();
    const std::vector<std::byte> values(kBytes, static_cast<std::byte>(own + 1));
    const Placed buffer(heap, values.data(), kBytes);
    const auto number = static_cast<std::size_t>(own);
    const std::vector<std::size_t> splits{10 * number, 10 * number + 1, 10 * number + 2};
    Offer offer = input_only(Kind::kAlltoall, buffer.get());
    offer.output = buffer.get() + 7;
    offer.output_bytes = 100;
    offer.splits = splits;
    const auto look = [&](Route) {
      for (int peer = 0; peer < 3; ++peer) {
        const auto theirs = static_cast<std::byte>(peer + 1);
        std::byte room[100] = {}, fetched[100] = {}, of_output[100] = {};
        const std::byte* seen = channels.peers.view_input(peer, 4900, 100, room);
        channels.peers.fetch_input(peer, 4900, 100, fetched);
        channels.peers.fetch_output(peer, 0, 100, of_output);
        if (seen[99] != theirs || fetched[99] != theirs || of_output[99] != theirs) throw std::runtime_error("bytes");
        if (channels.peers.split(peer, own) != static_cast<std::size_t>(10 * peer + own))
          throw std::runtime_error("splits");
      }
    };
    channels.peers.run(
        offer, [](CopyFunction) { throw std::runtime_error("one step"); },
        [](Copies) { throw std::runtime_error("the ring"); }, look);
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("a rank whose message fails returns when the others write nothing any more", "[runtime][unit]") {
  std::atomic<bool> writes{true};
  bool was_writing = true;
  const auto errors = run_heap_threads(small_layout(2), HeapOptions{}, [&](HeapRank rank) {
    auto* mine = rank.make<std::byte>(kBytes);
    const auto fail = [&](Route) {
      if (rank.rank() == 0) throw std::runtime_error("no luck");
      try {
        for (;;) rank.channels.group.check();
      } catch (const runjob::Error&) {
        writes = false;
        throw;
      }
    };
    try {
      rank.channels.peers.run(
          in_place(mine), [](CopyFunction) {}, [](Copies) {}, fail);
    } catch (...) {
      if (rank.rank() == 0) was_writing = writes;
      throw;
    }
  });
  CHECK(errors == std::vector<std::string>{"no luck", "rank 0 ended the exchange"});
  CHECK_FALSE(was_writing);
}

TEST_CASE("a message that a rank does not finish succeeds on none", "[runtime][unit]") {
  const auto errors = run_heap_threads(small_layout(3), HeapOptions{}, [&](HeapRank rank) {
    auto* mine = rank.make<std::byte>(kBytes);
    rank.channels.peers.run(
        in_place(mine), [](CopyFunction) {}, [](Copies) {},
        [&](Route) {
          if (rank.rank() == 2) rank.channels.group.end();
        });
  });
  CHECK(errors == std::vector<std::string>(3, "rank 2 ended the exchange"));
}

TEST_CASE("memory that cannot be read is an error that names its rank", "[runtime][unit]") {
  const auto errors = run_heap_threads(small_layout(2), {.cma = true, .way = Way::kRead}, [&](HeapRank rank) {
    void* page = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rank.rank() == 1) ::munmap(static_cast<std::byte*>(page) + 4096, 4096);
    std::byte room[kBytes];
    try {
      rank.channels.peers.run(
          input_only(Kind::kAllgather, page), [](CopyFunction) {}, [](Copies) {},
          [&](Route) {
            if (rank.rank() == 0) rank.channels.peers.fetch_input(1, 0, kBytes, room);
          });
    } catch (...) {
      rank.channels.group.end();
      throw;
    }
  });
  CHECK_THAT(errors[0], ContainsSubstring("reading memory of rank 1 (process "));
  CHECK_THAT(errors[0], ContainsSubstring("Bad address"));
  CHECK(errors[1] == "rank 0 ended the exchange");
}
