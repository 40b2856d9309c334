#include "runtime/collectives/shm/memory/symmetric_heap.hpp"

#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/heap_ranks.hpp"

using namespace runjob::runtime;

namespace {

constexpr std::size_t kWindow = 256u << 20;

/// Two ranks' heaps over one file.
struct Pair {
  Segment segment = Segment::create(4096, 2 * kWindow);
  std::shared_ptr<SymmetricHeap> zero = make(0), one = make(1);

  std::shared_ptr<SymmetricHeap> make(int rank) const {
    return std::make_shared<SymmetricHeap>(copy_of(segment), 4096, kWindow, rank, 2);
  }
  /// Memory that the file takes.
  std::size_t bytes() const {
    struct stat status {};
    ::fstat(segment.descriptor(), &status);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }
};

/// The use of its only backend.
void end(SymmetricHeap& heap) {
  heap.begin_use();
  heap.end_use();
}

}  // namespace

TEST_CASE("a rank sees what another one writes into its window, wherever each has mapped it", "[runtime][unit]") {
  const Pair pair;
  static_cast<void>(pair.one->allocate(100000));
  auto* mine = static_cast<char*>(pair.one->allocate(1000));
  REQUIRE(mine != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(mine) % 4096 == 0);
  std::strcpy(mine, "hello");
  const auto offset = pair.one->offset_of(mine + 1, 999);
  REQUIRE(offset);
  CHECK_FALSE(pair.zero->is_mapped());
  pair.zero->map_others();
  auto* seen = reinterpret_cast<char*>(pair.zero->at(1, *offset, 999));
  CHECK(seen != mine + 1);
  CHECK(seen == std::string("ello"));
  seen[0] = 'a';
  CHECK(mine == std::string("hallo"));
  CHECK(pair.one->at(1, *offset, 999) == reinterpret_cast<std::byte*>(mine + 1));
}

TEST_CASE("only what lies in the own window is symmetric", "[runtime][unit]") {
  const Pair pair;
  int ordinary = 0;
  CHECK_FALSE(pair.zero->offset_of(&ordinary, sizeof ordinary));
  auto* mine = static_cast<std::byte*>(pair.zero->allocate(1000));
  CHECK_FALSE(pair.zero->offset_of(&ordinary, sizeof ordinary));
  CHECK(pair.zero->offset_of(mine, 1000) == 0);
  CHECK(pair.zero->offset_of(mine + 999, 1) == 999);
  CHECK_FALSE(pair.zero->offset_of(mine, SIZE_MAX));
  CHECK_FALSE(pair.zero->offset_of(mine - 1, 1));
  CHECK_FALSE(pair.zero->offset_of(mine + kWindow - 1, 2));
  CHECK_FALSE(pair.one->offset_of(mine, 1000));
  pair.one->map_others();
  CHECK_FALSE(pair.one->offset_of(pair.one->at(0, 0, 1000), 1000));
  CHECK_THROWS_WITH(pair.one->at(0, kWindow, 1), "rank 0 named memory that it does not have");
  CHECK_THROWS_AS(pair.one->at(0, 1, SIZE_MAX), runjob::Error);
}

TEST_CASE("a full window gives nothing, and only what was given can be freed", "[runtime][unit]") {
  const Pair pair;
  int ordinary = 0;
  CHECK_FALSE(pair.zero->free(&ordinary));
  auto* all = static_cast<std::byte*>(pair.zero->allocate(kWindow));
  REQUIRE(all != nullptr);
  all[kWindow - 1] = std::byte{1};
  CHECK(pair.zero->allocate(1) == nullptr);
  CHECK_FALSE(pair.zero->free(&ordinary));
  CHECK_FALSE(pair.zero->free(all + 4096));
  CHECK(pair.zero->free(all));
  CHECK_FALSE(pair.zero->free(all));
  CHECK(pair.zero->allocate(kWindow) == all);
}

TEST_CASE("memory that was freed is given back when there is much of it", "[runtime][unit]") {
  constexpr std::size_t kPiece = 40u << 20;
  const Pair pair;
  for (int round = 0; round < 3; ++round) {
    void* large = pair.zero->allocate(kPiece);
    void* small = pair.zero->allocate(4096);
    std::memset(large, 1, kPiece);
    std::memset(small, 2, 4096);
    CHECK(pair.bytes() >= kPiece);
    pair.zero->free(large);
    CHECK(pair.bytes() < 1u << 20);
    CHECK(*static_cast<char*>(small) == 2);
    pair.zero->free(small);
  }
}

TEST_CASE("memory stays when the other ranks' is forgotten, and goes with its heap", "[runtime][unit]") {
  Pair pair;
  auto* mine = static_cast<char*>(pair.zero->allocate(5000));
  std::memset(mine, 3, 5000);
  pair.one->map_others();
  CHECK(*pair.one->at(0, 0, 1) == std::byte{3});
  end(*pair.zero);
  end(*pair.one);
  CHECK(pair.zero->allocate(1) != nullptr);
  CHECK(mine[4999] == 3);
  CHECK(pair.one->allocate(1) != nullptr);
  pair.zero.reset();
  CHECK(pair.bytes() == 0);
  unsigned char resident = 0;
  CHECK(::mincore(mine, 4096, &resident) == -1);  // ENOMEM: nothing is mapped there
}

TEST_CASE("the other ranks' windows stay until the last backend has ended", "[runtime][unit]") {
  const Pair pair;
  *static_cast<char*>(pair.one->allocate(1)) = 7;
  pair.zero->map_others();
  pair.zero->begin_use();
  pair.zero->begin_use();
  pair.zero->end_use();
  CHECK(*pair.zero->at(1, 0, 1) == std::byte{7});
  CHECK(pair.zero->is_mapped());
  pair.zero->end_use();
  CHECK_FALSE(pair.zero->is_mapped());
}

TEST_CASE("a heap that nobody has used before the end gives nothing after it", "[runtime][unit]") {
  const Pair pair;
  end(*pair.zero);
  CHECK(pair.zero->allocate(1) == nullptr);
  CHECK_FALSE(pair.zero->is_mapped());
}

TEST_CASE("a forked child has its parent's memory, but not the other ranks'", "[runtime][unit]") {
  const Pair pair;
  auto* mine = static_cast<char*>(pair.zero->allocate(1));
  *mine = 5;
  std::byte* theirs = pair.zero->at(1, 0, 1);
  const pid_t pid = ::fork();
  if (pid == 0) {
    unsigned char resident = 0;
    ::_exit(*mine == 5 && ::mincore(theirs, 4096, &resident) == -1 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("windows are as large as the memory, and there are none where a limit forbids it", "[runtime][unit]") {
  const auto memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * 4096;
  CHECK(SymmetricHeap::window_bytes(2) >= memory);
  CHECK(SymmetricHeap::window_bytes(2) % (std::size_t{256} << 20) !=
        0);  // the ranks' buffers stay in a first cache together
  CHECK(SymmetricHeap::window_bytes(100000) > 0);
  CHECK(SymmetricHeap::window_bytes(100000) * 100000 <= std::size_t{1} << 46);
  const auto resource = GENERATE(RLIMIT_FSIZE, RLIMIT_AS);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit limit{std::size_t{1} << 46, RLIM_INFINITY};
    ::setrlimit(resource, &limit);
    ::_exit(SymmetricHeap::window_bytes(2) == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  CHECK(status == 0);
}
