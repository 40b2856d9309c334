#include "runtime/collectives/shm/tuning/trial_schedule.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// The messages for which a choice holds after each of `series` series.
std::vector<int> stretches(TrialSchedule schedule, int series) {
  std::vector<int> all;
  for (int i = 0; i < series; ++i) {
    schedule.settle();
    all.push_back(0);
    for (; !schedule.is_trying(); ++all.back()) schedule.count();
  }
  return all;
}

}  // namespace

TEST_CASE("a choice holds four times as long after each series, up to a limit", "[runtime][unit]") {
  CHECK(stretches(TrialSchedule({.messages = 8, .timed = 6, .first_period = 10, .last_period = 320}), 5) ==
        std::vector<int>{10, 40, 160, 320, 320});
}

TEST_CASE("a period may have the trials in it", "[runtime][unit]") {
  const TrialSchedule::Lengths lengths{.first_period = 192, .last_period = 16384, .trials_in_period = 128};
  CHECK(stretches(TrialSchedule(lengths), 6) == std::vector<int>{64, 640, 2944, 12160, 16256, 16256});
}

TEST_CASE("a schedule begins with trials, or with a choice that holds for a while", "[runtime][unit]") {
  CHECK(TrialSchedule({}).is_trying());
  TrialSchedule later({}, 2);
  CHECK_FALSE(later.is_trying());
  later.count();
  CHECK_FALSE(later.is_trying());
  later.count();
  CHECK(later.is_trying());
}

TEST_CASE("the last messages of a candidate are timed", "[runtime][unit]") {
  const TrialSchedule schedule({.messages = 8, .timed = 6});
  CHECK_FALSE(schedule.is_timed(0));
  CHECK_FALSE(schedule.is_timed(1));
  CHECK(schedule.is_timed(2));
  CHECK(schedule.is_timed(7));
  CHECK_FALSE(schedule.is_enough(7));
  CHECK(schedule.is_enough(8));
}
