#include "runtime/collectives/shm/large_message.hpp"

#include <algorithm>
#include <sys/mman.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"

using namespace runjob::runtime;
using Part = LargeMessage::Part;

namespace {

constexpr std::size_t kBytes = 5000;
constexpr std::size_t kLarge = 128u << 10;  // may be read
constexpr std::size_t kOutput = 1u << 20;   // may be written past the caches

Path path_of(Channels& channels, const Part& part) {
  Path taken = Path::kPipeline;
  channels.large.run(part, [&](const Algorithm& algorithm) { taken = algorithm.path; });
  return taken;
}

void require_path(Channels& channels, const Part& part, Path path, const char* message) {
  if (path_of(channels, part) != path) throw std::runtime_error(message);
}
/// The tuner may choose either path for ordinary memory of this size.
void require_shared_memory(Channels& channels, const Part& part, const char* message) {
  const Path path = path_of(channels, part);
  if (path != Path::kPipeline && path != Path::kOneStep) throw std::runtime_error(message);
}

Part in_place(void* buffer, std::size_t bytes = kBytes) {
  return {.bytes = bytes, .buffers = {.input = buffer, .input_bytes = bytes, .output = buffer, .output_bytes = bytes}};
}

Part input_only(Kind kind, void* buffer) {
  return {.kind = kind, .bytes = kBytes, .buffers = {.input = buffer, .input_bytes = kBytes}};
}

}  // namespace

TEST_CASE("buffers are reached directly when all are symmetric", "[runtime][unit]") {
  const auto errors = run_heap_threads(small_layout(3), HeapOptions{}, [](HeapRank rank) {
    std::vector<std::byte> ordinary(kBytes);
    auto* mine = rank.make<std::byte>(kBytes);
    std::byte* on_some = rank.rank() == 1 ? ordinary.data() : mine;
    Channels& channels = rank.channels;
    require_path(channels, in_place(mine), Path::kSymmetric, "an allreduce in place");
    require_shared_memory(channels, in_place(on_some), "an allreduce, ordinary on one");
    require_path(channels, input_only(Kind::kAllgather, mine), Path::kSymmetric, "an allgather");
    require_shared_memory(channels, input_only(Kind::kAllgather, on_some), "an allgather, ordinary on one");
    Part broadcast = in_place(mine);
    broadcast.kind = Kind::kBroadcast;
    require_path(channels, broadcast, Path::kSymmetric, "a broadcast");
    Part apart = in_place(mine);
    apart.buffers.output = ordinary.data();
    require_shared_memory(channels, apart, "an output that is ordinary");
    Part empty = input_only(Kind::kAllgather, rank.rank() == 1 ? nullptr : mine);
    empty.buffers.input_bytes = rank.rank() == 1 ? 0 : kBytes;
    require_path(channels, empty, Path::kSymmetric, "no input on one");
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("a rank that has mapped no windows yet reads others' buffers from the second message on", "[runtime][unit]") {
  const auto errors = run_heap_threads(small_layout(2), HeapOptions{}, [](HeapRank rank) {
    Part part = input_only(Kind::kAllgather, nullptr);
    part.buffers.input_bytes = 0;  // rank 1 has nothing to give
    if (rank.rank() == 0) part = input_only(Kind::kAllgather, rank.make<std::byte>(kBytes));
    require_shared_memory(rank.channels, part, "first");
    require_path(rank.channels, part, Path::kSymmetric, "second");
  });
  CHECK(errors == no_errors(2));
}

TEST_CASE("without symmetric memory and CMA messages go through shared memory", "[runtime][unit]") {
  const auto errors = run_threads(small_layout(2), [](Channels& channels) {
    std::vector<std::byte> ordinary(kLarge);
    require_shared_memory(channels, in_place(ordinary.data(), kBytes), "small");
    require_shared_memory(channels, in_place(ordinary.data(), kLarge), "large");
  });
  CHECK(errors == no_errors(2));
}

TEST_CASE("ordinary memory is read through the kernel if every rank may", "[runtime][unit]") {
  const bool all_may = GENERATE(true, false);
  const auto options = [&](int rank) { return HeapOptions{.cma = all_may || rank != 1, .algorithm = kCma}; };
  const auto errors = run_heap_threads(small_layout(3), options, [&](HeapRank rank) {
    std::vector<std::byte> ordinary(kLarge);
    const auto require = [&](const Part& part) {
      if (all_may) return require_path(rank.channels, part, Path::kCma, "ordinary");
      require_shared_memory(rank.channels, part, "ordinary");
    };
    for (int i = 0; i < 3; ++i) require(in_place(ordinary.data(), kLarge));
  });
  CHECK(errors == no_errors(3));
}

TEST_CASE("algorithms are tried, and all ranks use the same one", "[runtime][unit]") {
  constexpr int kMessages = 1500;  // more than until all are tried again
  const auto [bytes, output_bytes, tried] = GENERATE(table<std::size_t, std::size_t, std::vector<Algorithm>>(
      {{kBytes, 0, {kOneStep, kStreamedOneStep, kPipeline, kStreamedPipeline}},
       {kLarge, kOutput - 1, {kPipeline, kStreamedPipeline, kCma}},
       {kLarge, kOutput, {kPipeline, kStreamedPipeline, kCma}}}));
  std::vector<std::vector<Algorithm>> used(3);
  const auto errors =
      run_heap_threads(small_layout(3), {.cma = true}, [&, size = bytes, last = output_bytes](HeapRank rank) {
        std::vector<std::byte> ordinary(kLarge), output(last);
        auto& own = used[static_cast<std::size_t>(rank.rank())];
        Part part = in_place(ordinary.data(), size);
        part.copied_out = output;
        for (int i = 0; i < kMessages; ++i)
          rank.channels.large.run(part, [&](const Algorithm& algorithm) { own.push_back(algorithm); });
      });
  CHECK(errors == no_errors(3));
  const auto uses = [&](const auto& is_one) { return std::count_if(used[0].begin(), used[0].end(), is_one); };
  std::ptrdiff_t others = kMessages;
  for (const Algorithm& algorithm : tried) {
    CAPTURE(name_of(algorithm));
    const auto count = uses([&](const Algorithm& each) { return each == algorithm; });
    CHECK(count >= 2 * AlgorithmTuner::kTrials);
    others -= count;
  }
  CHECK((others >= 2 * AlgorithmTuner::kTrials) == (output_bytes >= kOutput));
  CHECK(others == uses([](const Algorithm& each) { return each.out == Stores::kStreaming; }));
  CHECK(used[1] == used[0]);
  CHECK(used[2] == used[0]);
}

TEST_CASE("a rank whose message fails returns when the others have stopped writing", "[runtime][unit]") {
  std::atomic<bool> writes{true};
  bool was_writing = true;
  const auto errors = run_heap_threads(small_layout(2), HeapOptions{}, [&](HeapRank rank) {
    auto* mine = rank.make<std::byte>(kBytes);
    const auto fail = [&](const Algorithm&) {
      if (rank.rank() == 0) throw std::runtime_error("no luck");
      try {
        for (;;) rank.channels.group.check();
      } catch (const runjob::Error&) {
        writes = false;
        throw;
      }
    };
    try {
      rank.channels.large.run(in_place(mine), fail);
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
    rank.channels.large.run(in_place(mine), [&](const Algorithm&) {
      if (rank.rank() == 2) rank.channels.group.end();
    });
  });
  CHECK(errors == std::vector<std::string>(3, "rank 2 ended the exchange"));
}

TEST_CASE("memory that cannot be read is an error that names its rank", "[runtime][unit]") {
  const auto errors = run_heap_threads(small_layout(2), {.cma = true, .algorithm = kCma}, [&](HeapRank rank) {
    void* page = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rank.rank() == 1) ::munmap(static_cast<std::byte*>(page) + 4096, 4096);
    std::byte room[kBytes];
    try {
      rank.channels.large.run(input_only(Kind::kAllgather, page), [&](const Algorithm&) {
        if (rank.rank() == 0) rank.channels.buffers.fetch_input(1, 0, kBytes, room);
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
