#include "runtime/collectives/shm/spin_time.hpp"

#include "tests/catch.hpp"

using namespace std::chrono_literals;
using runjob::runtime::SpinTime;

namespace {

/// After so many sleeps that were long.
SpinTime after_long_waits(SpinTime::Duration most, int count) {
  SpinTime spin(most);
  for (int i = 0; i < count; ++i) spin.came_later(SpinTime::kShortWait);
  return spin;
}

}  // namespace

TEST_CASE("whoever waits long looks shorter and shorter, but still looks", "[runtime][unit]") {
  CHECK(SpinTime(100us).time() == 100us);
  CHECK(after_long_waits(100us, 1).time() == 50us);
  CHECK(after_long_waits(100us, 20).time() == SpinTime::kLeast);
}

TEST_CASE("what comes soon is looked for longer, also when the rank slept", "[runtime][unit]") {
  SpinTime spin = after_long_waits(100us, 20);
  spin.came_in_time();
  CHECK(spin.time() == 2us);
  spin.came_later(SpinTime::kShortWait - 1us);
  CHECK(spin.time() == 4us);
  for (int i = 0; i < 20; ++i) spin.came_later(50us);
  CHECK(spin.time() == 100us);
}

TEST_CASE("who keeps another one from running looks shorter", "[runtime][unit]") {
  SpinTime spin(100us);
  spin.gave_way();
  CHECK(spin.time() == 50us);
  for (int i = 0; i < 20; ++i) spin.gave_way();
  CHECK(spin.time() == SpinTime::kLeast);
}

TEST_CASE("no time to look stays none", "[runtime][unit]") {
  SpinTime spin(0us);
  CHECK_FALSE(spin.is_allowed());
  spin.came_later(1us);
  spin.came_in_time();
  spin.came_later(1s);
  CHECK(spin.time() == 0us);
}
