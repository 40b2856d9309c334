#include "base/process/time_limit.hpp"

#include "tests/catch.hpp"

using runjob::TimeLimit;
using namespace std::chrono_literals;

namespace {

constexpr TimeLimit::Clock::time_point kBegin{1000s};

/// When a wait that begins at kBegin is over, if each sleep ends when it should.
TimeLimit::Clock::duration end_of(TimeLimit limit) {
  auto now = kBegin;
  while (!limit.is_over(now)) now = limit.next_look();
  return now - kBegin;
}

}  // namespace

TEST_CASE("a wait is over after its limit, which is slept in slices", "[unit]") {
  CHECK(end_of(TimeLimit(30s, kBegin)) == 30s);
  CHECK(end_of(TimeLimit(1ms, kBegin)) == 1ms);
  CHECK(end_of(TimeLimit(0s, kBegin)) == 0s);
  TimeLimit limit(30s, kBegin);
  CHECK(limit.next_look() == kBegin + TimeLimit::kSlice);
  CHECK_FALSE(limit.is_over(kBegin + 100ms));
  CHECK(limit.next_look() == kBegin + 100ms + TimeLimit::kSlice);
}

TEST_CASE("the time for which the process stood still does not count", "[unit]") {
  TimeLimit limit(1s, kBegin);
  auto now = kBegin;
  for (int stops = 0; stops < 5; ++stops) {
    now += 1h;
    CHECK_FALSE(limit.is_over(now));
  }
  CHECK_FALSE(limit.is_over(now += 500ms));
  CHECK_FALSE(limit.is_over(now += 499ms));
  CHECK(limit.is_over(now += 1ms));
}

TEST_CASE("after the end of a limit there is still a next look", "[unit]") {
  TimeLimit limit(1ms, kBegin);
  CHECK(limit.is_over(kBegin + 2ms));
  CHECK(limit.next_look() == kBegin + 2ms + TimeLimit::kSlice);
  CHECK(limit.is_over(kBegin + 1h));
}
