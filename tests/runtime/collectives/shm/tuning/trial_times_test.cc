#include "runtime/collectives/shm/tuning/trial_times.hpp"

#include <algorithm>
#include <vector>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using std::chrono::nanoseconds;

namespace {

nanoseconds typical(const std::vector<int>& times) {
  TrialTimes trials;
  for (const int time : times) trials.add(nanoseconds(time));
  CHECK(trials.count() == std::min(times.size(), TrialTimes::kMost));
  return trials.typical();
}

}  // namespace

TEST_CASE("slow trials do not count in the typical time", "[runtime][unit]") {
  CHECK(typical({7}) == nanoseconds(7));
  CHECK(typical({900, 7}) == nanoseconds(7));
  CHECK(typical({8, 900, 6}) == nanoseconds(7));
  CHECK(typical({900, 1, 2, 3, 800, 4, 5, 3}) == nanoseconds(3));
}

TEST_CASE("no more than so many trials are counted", "[runtime][unit]") {
  std::vector<int> times(TrialTimes::kMost, 5);
  times.push_back(1);
  CHECK(typical(times) == nanoseconds(5));
}
