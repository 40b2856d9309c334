#include "runtime/collectives/shm/memory/parking.hpp"

#include <thread>

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

constexpr std::chrono::seconds kLong{60};

struct Words {
  Step word{0};
  Doorbell doorbell{};
  std::atomic<std::uint32_t> ended{0};

  bool sleep(std::uint64_t value, std::chrono::milliseconds timeout = kLong) {
    const auto is_over = [&] {
      return word.load(std::memory_order_seq_cst) >= value || ended.load(std::memory_order_seq_cst) != 0;
    };
    return sleep_until(is_over, doorbell, std::chrono::steady_clock::now() + timeout);
  }
};

}  // namespace

TEST_CASE("no wake-up is lost between two threads that take turns", "[runtime][unit]") {
  constexpr std::uint64_t kTurns = 20000;
  Words ping, pong;
  bool in_time = true;
  std::thread other([&] {
    for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
      in_time = ping.sleep(turn) && in_time;
      publish(pong.word, turn, pong.doorbell);
    }
  });
  bool ours = true;
  for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
    publish(ping.word, turn, ping.doorbell);
    ours = pong.sleep(turn) && ours;
  }
  other.join();
  CHECK(in_time);
  CHECK(ours);
  CHECK(ping.doorbell.sleepers == 0);
}

TEST_CASE("many sleepers are woken by one store", "[runtime][unit]") {
  Words words;
  std::vector<std::thread> sleepers;
  std::atomic<int> woken{0};
  for (int i = 0; i < 6; ++i) sleepers.emplace_back([&] { woken += words.sleep(1) ? 1 : 0; });
  while (words.doorbell.sleepers != 6) std::this_thread::yield();
  publish(words.word, 1, words.doorbell);
  for (std::thread& sleeper : sleepers) sleeper.join();
  CHECK(woken == 6);
}

TEST_CASE("a store that nobody sleeps for rings no bell", "[runtime][unit]") {
  Words words;
  publish(words.word, 1, words.doorbell);
  CHECK(words.doorbell.rings == 0);
  CHECK(words.sleep(1));
}

TEST_CASE("a ring after the end lets nobody sleep on", "[runtime][unit]") {
  Words words;
  bool in_time = false;
  std::thread sleeper([&] { in_time = words.sleep(1); });
  words.ended = 1;
  ring(words.doorbell);
  sleeper.join();
  CHECK(in_time);
}

TEST_CASE("who needs no bell rings none", "[runtime][unit]") {
  Words words;
  ring_if_needed(words.doorbell);
  CHECK(words.doorbell.rings == 0);
  words.doorbell.sleepers = 1;
  ring_if_needed(words.doorbell);
  CHECK(words.doorbell.rings == 1);
}

TEST_CASE("a sleep without a deadline lasts until it is over", "[runtime][unit]") {
  Words words;
  std::thread sleeper([&] {
    sleep_until([&] { return words.word.load(std::memory_order_seq_cst) != 0; }, words.doorbell,
                std::chrono::steady_clock::time_point::max());
  });
  while (words.doorbell.sleepers == 0) std::this_thread::yield();
  publish(words.word, 1, words.doorbell);
  sleeper.join();
}

TEST_CASE("a sleep ends when its time is up", "[runtime][unit]") {
  Words words;
  CHECK_FALSE(words.sleep(1, std::chrono::milliseconds(5)));
  CHECK_FALSE(words.sleep(1, std::chrono::milliseconds(0)));
  CHECK(words.doorbell.sleepers == 0);
}
