#include "runtime/collectives/shm/buffer_exchange.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"
#include "tests/thrown.hpp"

using namespace runjob::runtime;
using runjob::thrown;

namespace {

constexpr std::size_t kBytes = 5000;

void require(bool condition, const char* message) {
  if (!condition) throw std::runtime_error(message);
}

Buffers input_only(const void* buffer, std::size_t bytes = kBytes) {
  return {.input = buffer, .input_bytes = bytes};
}

}  // namespace

TEST_CASE("every rank receives rank 0's choice", "[runtime][unit]") {
  const auto errors = run_threads(small_layout(3), [](Channels& channels) {
    const bool is_first = channels.group.rank() == 0;
    for (int i = 0; i < 100; ++i) {
      const Choice announced{.algorithm = kStreamedOutput, .is_trial = i % 2 == 0, .probes_cma = i % 3 == 0};
      channels.buffers.announce({}, is_first ? announced : Choice{.algorithm = kCma});
      const Choice choice = channels.buffers.collect();
      require(choice.algorithm == announced.algorithm, "algorithm");
      require(choice.is_trial == announced.is_trial && choice.probes_cma == announced.probes_cma, "flags");
    }
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("buffers are symmetric if each of them is, once every rank has mapped the windows", "[runtime][unit]") {
  const auto errors = run_heap_threads(small_layout(2), HeapOptions{}, [](HeapRank rank) {
    BufferExchange& buffers = rank.channels.buffers;
    const auto are_symmetric = [&](const Buffers& own) {
      buffers.announce(own, {});
      buffers.collect();
      return buffers.all_are_symmetric();
    };
    // Rank 1 has no buffer, so that it has not mapped anything yet.
    const Buffers first = rank.rank() == 0 ? input_only(rank.make<std::byte>(kBytes)) : input_only(nullptr, 0);
    require(!are_symmetric(first), "before rank 1 has mapped");
    require(are_symmetric(first), "after that");
    std::vector<std::byte> ordinary(kBytes);
    Buffers own = input_only(rank.make<std::byte>(kBytes));
    require(are_symmetric(own), "all inputs");
    if (rank.rank() == 1) own.input = ordinary.data();
    require(!are_symmetric(own), "an ordinary input");
    require(buffers.own_are_symmetric() == (rank.rank() == 0), "own");
    own = input_only(rank.make<std::byte>(kBytes));
    own.output = ordinary.data();
    own.output_bytes = kBytes;
    require(!are_symmetric(own), "an ordinary output");
  });
  CHECK(errors == no_errors(2));
}

TEST_CASE("a probe succeeds on all ranks if each of them may read memory", "[runtime][unit]") {
  const bool all_may = GENERATE(true, false);
  const auto options = [&](int rank) { return HeapOptions{.cma = all_may || rank != 1}; };
  const auto errors = run_heap_threads(small_layout(3), options, [&](HeapRank rank) {
    BufferExchange& buffers = rank.channels.buffers;
    require(!buffers.has_probed_cma() && buffers.may_use_cma() == (all_may || rank.rank() != 1), "before");
    require(buffers.probe_cma() == all_may, "the probe");
    require(buffers.has_probed_cma() && buffers.may_use_cma() == all_may, "after");
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("bytes and splits come from the rank that has announced them", "[runtime][unit]") {
  const Placement placement = GENERATE(kSymmetric, kOrdinary);
  const auto errors = run_placed(small_layout(3), placement, [&](Channels& channels, SymmetricHeap* heap) {
    BufferExchange& buffers = channels.buffers;
    const int own = channels.group.rank();
    const std::vector<std::byte> values(kBytes, static_cast<std::byte>(own + 1));
    const Placed buffer(heap, values.data(), kBytes);
    const auto index = static_cast<std::size_t>(own);
    const std::vector<std::size_t> splits{10 * index, 10 * index + 1, 10 * index + 2};
    if (heap == nullptr) require(buffers.probe_cma(), "the probe");
    buffers.announce({buffer.get(), kBytes, buffer.get() + 7, 100, splits}, {});
    buffers.collect();
    for (int peer = 0; peer < 3; ++peer) {
      const auto theirs = static_cast<std::byte>(peer + 1);
      std::byte room[100] = {}, fetched[100] = {}, of_output[100] = {};
      const std::byte* seen = buffers.view_input(peer, 4900, 100, room);
      buffers.fetch_input(peer, 4900, 100, fetched);
      buffers.fetch_output(peer, 0, 100, of_output);
      require(seen[99] == theirs && fetched[99] == theirs && of_output[99] == theirs, "bytes");
      require(buffers.split(peer, own) == static_cast<std::size_t>(10 * peer + own), "splits");
      if (heap == nullptr) continue;
      require(buffers.input(peer, kBytes)[0] == theirs && buffers.output(peer, 100)[99] == theirs, "pointers");
    }
    channels.small.send(nullptr, 0);  // no rank frees its buffer before all have read it
    for (int peer = 0; peer < 3; ++peer) channels.small.take(peer, 0);
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("memory that cannot be read is that of a rank of the job, not of the process set", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  std::string error;
  std::vector<std::thread> ranks;
  for (const int rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      GroupOptions options = options_of(rank);
      options.names = {1, 2};
      Channels channels(segment.data(), layout, options, {.cma = true});
      channels.buffers.probe_cma();
      channels.buffers.announce(input_only(nullptr), {});  // where no memory is
      channels.buffers.collect();
      if (rank != 0) return;
      std::byte room[100];
      error = thrown([&] { channels.buffers.fetch_input(1, 0, sizeof room, room); }).second;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK_THAT(error, ContainsSubstring("reading memory of rank 2 (process "));
}

TEST_CASE("an announcement fits if it is a small message", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  const Channels channels(segment.data(), layout, options_of(0));
  CHECK(channels.buffers.fits(0));
  CHECK(channels.buffers.fits(400));
  CHECK_FALSE(channels.buffers.fits(4096 / sizeof(std::size_t)));
}

TEST_CASE("room for copies grows with the need for it", "[runtime][unit]") {
  const Layout layout = small_layout(1);
  const TestSegment segment(layout);
  Channels channels(segment.data(), layout, options_of(0));
  std::byte* first = channels.buffers.scratch(100);
  CHECK(channels.buffers.scratch(50) == first);
  std::byte* large = channels.buffers.scratch(1u << 20);
  large[(1u << 20) - 1] = std::byte{1};
  CHECK(channels.buffers.scratch(1u << 20) == large);
}
