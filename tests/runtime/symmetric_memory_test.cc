#include "runtime/symmetric_memory.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "runtime/collectives/shm/memory/segment.hpp"
#include "runtime/collectives/shm/memory/symmetric_heap.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

/// Also jobs whose ranks use such memory, as their processes see it.

using namespace runjob::runtime;
using runjob::Errc;

namespace {

void check_all(const std::vector<Outcome>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    INFO("rank " << rank << ": " << outcomes[rank].message);
    CHECK(outcomes[rank].ok());
  }
}

bool is_page_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % 4096 == 0;
}

/// `count` floats from the C interface.
float* make(std::size_t count, float value) {
  void* memory = nullptr;
  check(runjob_symmetric_alloc(count * sizeof(float), &memory));
  require(memory != nullptr && is_page_aligned(memory), "alignment");
  auto* values = static_cast<float*>(memory);
  std::fill_n(values, count, value);
  return values;
}

runjob_code sum_in_place(const std::string& name, float* values, std::size_t count) {
  const auto extent = static_cast<std::int64_t>(count);
  runjob_handle handle = 0;
  const runjob_code code =
      runjob_allreduce_async(name.c_str(), values, values, &extent, 1, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0, &handle);
  return code == RUNJOB_OK ? finish(handle) : code;
}

void require_all(const float* values, std::size_t count, float value, const std::string& what) {
  const float* wrong = std::find_if(values, values + count, [&](float each) { return each != value; });
  require(wrong == values + count, what + " at " + std::to_string(wrong - values));
}

/// How many mappings of shared memory this process has.
int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("/memfd:runjob") != line.npos;
  return count;
}

constexpr std::size_t kCount = 1000003;

}  // namespace

TEST_CASE("without a heap, symmetric memory is ordinary memory", "[runtime][unit]") {
  SymmetricMemory memory;
  void* nothing = memory.allocate(0, nullptr);
  void* some = memory.allocate(10000, nullptr);
  CHECK(nothing != some);
  CHECK(is_page_aligned(nothing));
  CHECK(is_page_aligned(some));
  std::memset(some, 1, 10000);
  memory.free(some);
  memory.free(nothing);
  memory.free(nullptr);
}

TEST_CASE("what was not allocated cannot be freed, nor twice", "[runtime][unit]") {
  SymmetricMemory memory;
  int other = 0;
  CHECK_THROWS_WITH(memory.free(&other), ContainsSubstring("is no symmetric memory of this process"));
  void* some = memory.allocate(1, nullptr);
  memory.free(some);
  CHECK_THROWS_AS(memory.free(some), runjob::Error);
}

TEST_CASE("a heap lives as long as memory of it, and a full one is not the end", "[runtime][unit]") {
  SymmetricMemory memory;
  Segment segment = Segment::create(4096, 8192);
  auto heap = std::make_shared<SymmetricHeap>(segment.take_descriptor(), 4096, 8192, 0, 1);
  const std::weak_ptr<SymmetricHeap> watched = heap;
  auto* some = static_cast<char*>(memory.allocate(8192, heap));
  CHECK(heap->offset_of(some, 8192) == 0);
  void* more = memory.allocate(1, heap);
  CHECK_FALSE(heap->offset_of(more, 1));
  memory.free(more);
  heap.reset();
  std::memset(some, 1, 8192);
  CHECK_FALSE(watched.expired());
  memory.free(some);
  CHECK(watched.expired());
}

TEST_CASE("there is none before init and for null", "[runtime][multiproc]") {
  const Outcome outcome = run_alone([] {
    void* memory = nullptr;
    require(runjob_symmetric_alloc(1, &memory) == RUNJOB_NOT_INITIALIZED, "before init");
    check(runjob_init());
    require(runjob_symmetric_alloc(1, nullptr) == RUNJOB_INVALID_ARGUMENT, "nowhere to put it");
    require(runjob_symmetric_alloc(SIZE_MAX, &memory) == RUNJOB_UNAVAILABLE, "more than there is");
    require(runjob_symmetric_free(&memory) == RUNJOB_INVALID_ARGUMENT, "not ours");
    check(runjob_symmetric_free(nullptr));
    return outcome_of(runjob_shutdown());
  });
  INFO(outcome.message);
  CHECK(outcome.ok());
}

TEST_CASE("every kind of job sums in symmetric memory, and it outlives the job", "[runtime][multiproc]") {
  RankOptions options = on_one_host(GENERATE(1, 2, 3));
  const auto size = static_cast<float>(options.hosts.size());
  const std::string shared = GENERATE("1", "0"), cma = GENERATE("1", "0");
  if (shared == "0" && cma == "0") return;
  options.environment = {{"RUNJOB_SHARED_MEMORY", shared}, {"RUNJOB_CMA", cma}};
  check_all(run_ranks(options, [&](int rank) {
    check(runjob_init());
    float* first = make(kCount, 1);
    if (rank == 1) check(runjob_symmetric_free(make(100, 0)));  // the ranks need not allocate alike
    float* second = make(kCount + static_cast<std::size_t>(rank), 2);
    for (int round = 0; round < 3; ++round) {
      std::fill_n(first, kCount, 1.0F);
      check(sum_in_place("a", first, kCount));
      require_all(first, kCount, size, "sum");
    }
    check(sum_in_place("b", second + 3, kCount - 3));
    require_all(second + 3, kCount - 3, 2 * size, "from the middle");
    require(second[2] == 2, "before the buffer");
    check(runjob_symmetric_free(second));
    check(runjob_shutdown());
    require_all(first, kCount, size, "after shutdown");
    check(runjob_init());
    float* third = make(kCount, 3);
    check(sum_in_place("c", first, kCount));
    require_all(first, kCount, size * size, "of an earlier job");
    check(runjob_symmetric_free(first));
    check(sum_in_place("d", third, kCount));
    require_all(third, kCount, 3 * size, "of this job");
    check(runjob_shutdown());
    require((mappings() > 0) == (shared == "1" && size > 1), "mapped while there is memory");
    check(runjob_symmetric_free(third));
    require(mappings() == 0, "still mapped");
    return outcome_of(RUNJOB_OK);
  }));
}

TEST_CASE("large ordinary buffers come to the same sums whichever way they go", "[runtime][multiproc]") {
  const std::size_t size = GENERATE(2, 3);
  RankOptions options = on_one_host(static_cast<int>(size));
  options.environment = {{"RUNJOB_CMA", GENERATE("1", "0")}};
  check_all(run_ranks(options, [&](int rank) {
    check(runjob_init());
    std::vector<float> values(kCount);
    for (int round = 0; round < 12; ++round) {
      std::fill(values.begin(), values.end(), static_cast<float>(rank + round));
      check(sum_in_place("x", values.data(), kCount));
      const auto ranks = static_cast<float>(size);
      require_all(values.data(), kCount, ranks * static_cast<float>(round) + ranks * (ranks - 1) / 2, "sum");
    }
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("a rank killed while all sum in symmetric memory is named by the others", "[runtime][multiproc]") {
  constexpr std::size_t kLarge = 8u << 20;
  const auto outcomes = run_ranks(on_one_host(3), [&](int rank) {
    check(runjob_init());
    float* values = make(kLarge, 0);
    for (int round = 0;; ++round) {
      const auto extent = static_cast<std::int64_t>(kLarge);
      runjob_handle handle = 0;
      runjob_code code =
          runjob_allreduce_async("x", values, values, &extent, 1, RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0, &handle);
      if (rank == 1 && round == 1) {
        static_cast<void>(runjob_wait(handle, 0.002));
        std::raise(SIGKILL);
      }
      if (code == RUNJOB_OK) code = finish(handle);
      if (code != RUNJOB_OK) return outcome_of(code);
    }
  });
  for (const std::size_t rank : {0u, 2u}) {
    INFO(outcomes[rank].message);
    CHECK(outcomes[rank].code == RUNJOB_PEER_LOST);
    CHECK_THAT(outcomes[rank].message, ContainsSubstring("rank 1 on alpha is gone"));
  }
}

TEST_CASE("a forked child reads its parent's symmetric memory and cannot free it", "[runtime][multiproc]") {
  check_all(run_ranks(on_one_host(2), [](int) {
    check(runjob_init());
    float* values = make(kCount, 1);
    check(sum_in_place("before", values, kCount));
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(values[kCount - 1] == 2 && runjob_symmetric_free(values) == RUNJOB_INVALID_ARGUMENT ? 0 : 1);
    int status = -1;
    ::waitpid(pid, &status, 0);
    require(status == 0, "child");
    check(sum_in_place("after", values, kCount));
    require_all(values, kCount, 4, "after");
    check(runjob_symmetric_free(values));
    return outcome_of(runjob_shutdown());
  }));
}
