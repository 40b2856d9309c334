#include "runtime/collectives/hierarchical/rounds/round_wait.hpp"

#include <thread>

#include "base/process/time_limit.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/rounds_hosts.hpp"
#include "tests/thrown.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;

namespace {

constexpr auto kForEver = RoundWait::Clock::time_point::max();

bool none_is_busy(int) {
  return false;
}

bool is_rank_1(int rank) {
  return rank == 1;
}

}  // namespace

TEST_CASE("round wait: without a rank that must come there is the deadline alone", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1});
  const Attendance attendance(ranks[1].topology, ranks[1].local.group, ranks[1].board);
  RoundWait wait(attendance, nullptr, std::chrono::milliseconds(1));
  wait.begin(1);
  CHECK(wait.next_look(std::nullopt, none_is_busy) == kForEver);
  const auto deadline = RoundWait::Clock::now() + std::chrono::milliseconds(5);
  CHECK(wait.next_look(deadline, none_is_busy) == deadline);
  std::this_thread::sleep_until(deadline);
  CHECK_FALSE(wait.is_over(std::nullopt, none_is_busy));
  CHECK(wait.is_over(deadline, none_is_busy));
}

TEST_CASE("round wait: a rank that must come and does not is named", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1});
  const Attendance attendance(ranks[0].topology, ranks[0].local.group, ranks[0].board);
  RoundWait wait(attendance, nullptr, std::chrono::milliseconds(5));
  wait.begin(2);
  const auto look = wait.next_look(std::nullopt, is_rank_1);
  REQUIRE(look != kForEver);
  std::this_thread::sleep_until(look);
  SECTION("late") {
    try {
      wait.is_over(std::nullopt, is_rank_1);
      FAIL("waited on");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kTimeout);
      CHECK_THAT(std::string(error.what()), ContainsSubstring("rank 1"));
    }
  }
  SECTION("there by now") {
    ranks[0].board.given(1).store(2);
    CHECK_FALSE(wait.is_over(std::nullopt, is_rank_1));
  }
  SECTION("the time of the next round begins with its first wait") {
    wait.begin(3);
    CHECK_FALSE(wait.is_over(std::nullopt, is_rank_1));
  }
}

TEST_CASE("round wait: no rank is late as long as one moves bytes", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1});
  const Attendance attendance(ranks[0].topology, ranks[0].local.group, ranks[0].board);
  RoundWait wait(attendance, nullptr, std::chrono::milliseconds(5));
  wait.begin(1);
  for (int move = 0; move < 3; ++move) {
    std::this_thread::sleep_until(wait.next_look(std::nullopt, is_rank_1));
    ranks[0].board.moves(2).fetch_add(1);
    CHECK_FALSE(wait.is_over(std::nullopt, is_rank_1));
  }
  std::this_thread::sleep_until(wait.next_look(std::nullopt, is_rank_1));
  CHECK(runjob::thrown([&] { wait.is_over(std::nullopt, is_rank_1); }).first == Errc::kTimeout);
}

TEST_CASE("round wait: a rank of a process set has the name that it has in the job", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1});
  const Topology of_set(0, {0, 0, 1}, {3, 5, 9});
  const Attendance attendance(of_set, ranks[0].local.group, ranks[0].board);
  RoundWait wait(attendance, nullptr, std::chrono::milliseconds(0));
  wait.begin(1);
  static_cast<void>(wait.next_look(std::nullopt, is_rank_1));
  const auto error = runjob::thrown([&] { wait.is_over(std::nullopt, is_rank_1); });
  CHECK(error.first == Errc::kTimeout);
  CHECK_THAT(error.second, ContainsSubstring("rank 5"));
}

TEST_CASE("round wait: the time for which the process stood still does not count", "[runtime][unit]") {
  RoundsHosts ranks({0, 0, 1});
  const Attendance attendance(ranks[0].topology, ranks[0].local.group, ranks[0].board);
  RoundWait wait(attendance, nullptr, std::chrono::milliseconds(500));
  wait.begin(2);
  static_cast<void>(wait.next_look(std::nullopt, is_rank_1));
  std::this_thread::sleep_for(runjob::TimeLimit::kStandstill);  // as a stopped process
  CHECK_FALSE(wait.is_over(std::nullopt, is_rank_1));
}

TEST_CASE("round wait: a leader asks the other hosts each time that it has waited for long", "[runtime][net]") {
  RoundsHosts ranks({0, 1});
  LeaderExchange& exchange = *ranks[0].exchange;
  const Attendance attendance(ranks[0].topology, ranks[0].local.group, ranks[0].board);
  RoundWait wait(attendance, &exchange, std::chrono::seconds(60));
  ranks[1].board.given(1).store(1);
  wait.begin(1);
  const auto first = wait.next_look(std::nullopt, none_is_busy);
  CHECK_FALSE(wait.is_over(std::nullopt, none_is_busy));
  CHECK(exchange.traffic().messages == 0);  // not yet
  for (std::uint64_t question = 1; question <= 2; ++question) {
    std::this_thread::sleep_until(wait.next_look(std::nullopt, none_is_busy));
    CHECK_FALSE(wait.is_over(std::nullopt, none_is_busy));
    CHECK(exchange.traffic().messages == question);
  }
  CHECK(wait.next_look(std::nullopt, none_is_busy) > first);
  while (!attendance.has_given(1, 1)) exchange.wait(kForEver);  // the answer
}
