#include "base/memory/kept_blocks.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using runjob::KeptBlocks;
using runjob::make_shared_in;

namespace {

/// Counts the objects that are alive.
struct Counted {
  explicit Counted(int& alive_count, int with = 0) : alive(alive_count), value(with) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  int& alive;
  int value;
};

}  // namespace

TEST_CASE("objects are made and destroyed as by make_shared()", "[base][unit]") {
  const auto blocks = std::make_shared<KeptBlocks>();
  int alive = 0;
  for (int i = 0; i < 3; ++i) {
    const auto first = make_shared_in<Counted>(blocks, alive, i), second = make_shared_in<Counted>(blocks, alive, -i);
    CHECK(first->value == i);
    CHECK(second->value == -i);
    CHECK(alive == 2);
  }
  CHECK(alive == 0);
}

TEST_CASE("an object has the memory of the last one that was destroyed", "[base][unit]") {
  const auto blocks = std::make_shared<KeptBlocks>();
  int alive = 0;
  auto first = make_shared_in<Counted>(blocks, alive), second = make_shared_in<Counted>(blocks, alive);
  const void* const place = second.get();
  CHECK(first.get() != place);
  second.reset();
  const auto third = make_shared_in<Counted>(blocks, alive);
  if (runjob::kKeepsMemory) CHECK(third.get() == place);
}

TEST_CASE("an object may outlive the owner of its memory", "[base][unit]") {
  auto blocks = std::make_shared<KeptBlocks>();
  int alive = 0;
  auto object = make_shared_in<Counted>(blocks, alive, 7);
  make_shared_in<Counted>(blocks, alive);
  const std::weak_ptr<KeptBlocks> watched = blocks;
  blocks.reset();
  CHECK(object->value == 7);
  object.reset();
  CHECK(alive == 0);
  CHECK(watched.expired());
}

TEST_CASE("several threads make objects that others destroy", "[base][unit]") {
  constexpr int kThreads = 4, kRounds = 2000;
  const auto blocks = std::make_shared<KeptBlocks>();
  std::mutex mutex;
  std::array<std::shared_ptr<int>, kThreads> places;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kRounds; ++i) {
        const auto own = make_shared_in<int>(blocks, thread * kRounds + i);
        std::shared_ptr<int> other = own;
        {
          const std::lock_guard lock(mutex);
          places[static_cast<std::size_t>((thread + i) % kThreads)].swap(other);
        }
        if (*own != thread * kRounds + i) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
}
