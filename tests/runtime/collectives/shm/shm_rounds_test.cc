#include "runtime/collectives/shm/shm_rounds.hpp"

#include <algorithm>
#include <future>
#include <stdexcept>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"
#include "tests/thrown.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;
using runjob::thrown;

namespace {

std::vector<std::byte> message_of(int rank, std::size_t bytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(rank + 1));
}

constexpr auto kNoDeadline = std::nullopt;
bool is_not_busy(int) {
  return false;
}

}  // namespace

TEST_CASE("all ranks hear all messages, of any length, between other exchanges", "[runtime][unit]") {
  const int size = GENERATE(1, 2, 5);
  const auto errors = run_threads(small_layout(size), [&](Channels& channels) {
    for (std::uint32_t i = 0; i < 500; ++i) {
      const auto bytes_of = [&](int rank) { return (i * 31 + static_cast<std::size_t>(rank) * 7) % 120; };
      const int own = channels.group.rank();
      channels.rounds.give(i + static_cast<std::uint32_t>(own), message_of(own, bytes_of(own)));
      if (!channels.rounds.collect(kNoDeadline, is_not_busy)) throw std::runtime_error("no end");
      for (int rank = 0; rank < size; ++rank) {
        const auto message = channels.rounds.message(rank);
        if (channels.rounds.tag(rank) != i + static_cast<std::uint32_t>(rank)) throw std::runtime_error("tag");
        if (std::vector<std::byte>(message.begin(), message.end()) != message_of(rank, bytes_of(rank)))
          throw std::runtime_error("message");
      }
      if (i % 3 == 0) {
        static_cast<void>(channels.small.begin(0));
        channels.small.give();
        for (int rank = 0; rank < size; ++rank) static_cast<void>(channels.small.take(rank, 0));
      }
    }
  });
  CHECK(errors == no_errors(size));
}

TEST_CASE("messages arrive whole whichever way they are written", "[runtime][unit]") {
  const int size = GENERATE(2, 3);
  const Rounds::Part unread{1000, 500};
  const auto errors = run_threads(small_layout(size), [&](Channels& channels) {
    const int own = channels.group.rank(), other = (own + 1) % size;
    for (std::uint32_t i = 0; i < StoresTuner::kFirstPeriod + 3 * StoresTuner::kTrials; ++i) {
      const std::size_t bytes = 4095 - i % 64;
      channels.rounds.give_input(i, message_of(own, bytes), unread);
      if (!channels.rounds.collect(kNoDeadline, is_not_busy)) throw std::runtime_error("no end");
      const auto message = channels.rounds.message(other), after = message.subspan(unread.first + unread.bytes);
      const auto expected = message_of(other, bytes);
      if (!std::equal(message.begin(), message.begin() + unread.first, expected.begin()) ||
          !std::equal(after.begin(), after.end(), expected.begin() + unread.first + unread.bytes))
        throw std::runtime_error("message");
      channels.rounds.expect_next(bytes);
    }
  });
  CHECK(errors == no_errors(size));
}

TEST_CASE("who waits for one rank hears that another one has left", "[runtime][unit]") {
  Status waited;
  const auto errors = run_threads(small_layout(3), [&](Channels& channels) {
    if (channels.group.rank() == 0) return;  // has nothing to say, and will not for long
    if (channels.group.rank() == 2) return channels.rounds.leave();
    channels.rounds.give(1, {});
    try {
      channels.rounds.collect(kNoDeadline, is_not_busy);
    } catch (const Error& error) {
      waited = Status(error);
    }
  });
  CHECK(errors == no_errors(3));
  CHECK(waited.code() == Errc::kPeerLost);
  CHECK(waited.message() == "rank 2 has left");
}

TEST_CASE("of a message with an unread part the rest arrives", "[runtime][unit]") {
  const Rounds::Part unread =
      GENERATE(Rounds::Part{0, 30}, Rounds::Part{30, 40}, Rounds::Part{60, 60}, Rounds::Part{0, 120});
  const auto errors = run_threads(small_layout(2), [&](Channels& channels) {
    const int own = channels.group.rank();
    for (std::uint32_t i = 0; i < 100; ++i) {
      channels.rounds.give_input(i, message_of(own, 120), unread);
      if (!channels.rounds.collect(kNoDeadline, is_not_busy)) throw std::runtime_error("no end");
      const auto message = channels.rounds.message(1 - own);
      const auto expected = message_of(1 - own, 120);
      for (std::size_t k = 0; k < 120; ++k) {
        const bool is_unread = k >= unread.first && k < unread.first + unread.bytes;
        if (!is_unread && message[k] != expected[k]) throw std::runtime_error("message");
      }
      channels.rounds.expect_next(120);
    }
  });
  CHECK(errors == no_errors(2));
}

TEST_CASE("a round that is not over at its deadline can be collected later", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels zero(segment.data(), layout, options_of(0)), one(segment.data(), layout, options_of(1));
  CHECK_FALSE(one.rounds.is_awaited());
  zero.rounds.give(7, {});
  CHECK_FALSE(zero.rounds.collect(Rounds::Clock::now(), is_not_busy));
  CHECK(one.rounds.is_awaited());
  CHECK_FALSE(zero.rounds.is_awaited());
  one.rounds.give(8, {});
  CHECK(zero.rounds.collect(kNoDeadline, is_not_busy));
  CHECK(zero.rounds.tag(1) == 8);
}

TEST_CASE("a rank that takes part must come in time, another one need not", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels zero(segment.data(), layout, options_of(0, {}, std::chrono::milliseconds(5)));
  zero.rounds.give(1, {});
  CHECK(thrown([&] { zero.rounds.collect(kNoDeadline, [](int) { return true; }); }).first == Errc::kTimeout);
  CHECK_FALSE(zero.rounds.collect(Rounds::Clock::now() + std::chrono::milliseconds(20), is_not_busy));
}

TEST_CASE("a rank that waits for a reason to begin a round is woken by each", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels zero(segment.data(), layout, options_of(0)), one(segment.data(), layout, options_of(1));
  auto waiting = std::async(std::launch::async, [&] { one.rounds.wait(kNoDeadline); });
  SECTION("another rank's message") {
    zero.rounds.give(1, {});
  }
  SECTION("a nudge") {
    one.rounds.nudge();
  }
  SECTION("another rank that leaves") {
    zero.rounds.leave();
    waiting.wait();
    CHECK(one.rounds.is_awaited());
  }
  waiting.get();
}

TEST_CASE("a nudge before the wait counts, and once only", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels one(segment.data(), layout, options_of(1));
  one.rounds.nudge();
  one.rounds.wait(kNoDeadline);
  const auto deadline = Rounds::Clock::now() + std::chrono::milliseconds(5);
  one.rounds.wait(deadline);
  CHECK(Rounds::Clock::now() >= deadline);
}

TEST_CASE("a rank that leaves ends its own waits and those for what it has not given", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels zero(segment.data(), layout, options_of(0)), one(segment.data(), layout, options_of(1));
  one.rounds.give(1, {});
  auto own =
      std::async(std::launch::async, [&] { return thrown([&] { one.rounds.collect(kNoDeadline, is_not_busy); }); });
  one.rounds.leave();
  CHECK(own.get() == std::pair(Errc::kAborted, std::string("this rank leaves the exchange")));
  zero.rounds.give(1, {});
  CHECK(zero.rounds.collect(kNoDeadline, is_not_busy));  // what it has given counts
  zero.rounds.give(2, {});
  CHECK(thrown([&] { zero.rounds.collect(kNoDeadline, is_not_busy); }) ==
        std::pair(Errc::kPeerLost, std::string("rank 1 has left")));
}

TEST_CASE("the end of the group ends every wait for a round", "[runtime][unit]") {
  const Layout layout = small_layout(2);
  const TestSegment segment(layout);
  Channels zero(segment.data(), layout, options_of(0)), one(segment.data(), layout, options_of(1));
  auto idle = std::async(std::launch::async, [&] { return thrown([&] { one.rounds.wait(kNoDeadline); }).second; });
  zero.group.end();
  CHECK(idle.get() == "rank 0 ended the exchange");
}
