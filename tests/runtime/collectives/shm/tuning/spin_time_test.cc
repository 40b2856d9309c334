#include "runtime/collectives/shm/tuning/spin_time.hpp"

#include "tests/catch.hpp"

using namespace std::chrono_literals;
using runjob::runtime::SpinTime;

namespace {

/// After so many sleeps that were long.
SpinTime after_long_waits(SpinTime::Duration most, int count) {
  SpinTime spin(most);
  for (int i = 0; i < count; ++i) spin.reached_after_sleep(SpinTime::kShortWait);
  return spin;
}

}  // namespace

TEST_CASE("a rank that waits long spins for a shorter time, but still spins", "[runtime][unit]") {
  CHECK(SpinTime(100us).time() == 100us);
  CHECK(after_long_waits(100us, 1).time() == 50us);
  CHECK(after_long_waits(100us, 20).time() == SpinTime::kLeast);
}

TEST_CASE("a wait that ends soon asks for longer spins, also if the rank slept", "[runtime][unit]") {
  SpinTime spin = after_long_waits(100us, 20);
  spin.reached_while_spinning();
  CHECK(spin.time() == 2us);
  spin.reached_after_sleep(SpinTime::kShortWait - 1us);
  CHECK(spin.time() == 4us);
  for (int i = 0; i < 20; ++i) spin.reached_after_sleep(50us);
  CHECK(spin.time() == 100us);
}

TEST_CASE("a rank that keeps another one from running spins for a shorter time", "[runtime][unit]") {
  SpinTime spin(100us);
  spin.reached_after_yield();
  CHECK(spin.time() == 50us);
  for (int i = 0; i < 20; ++i) spin.reached_after_yield();
  CHECK(spin.time() == SpinTime::kLeast);
}

TEST_CASE("a rank that may not spin never does", "[runtime][unit]") {
  SpinTime spin(0us);
  CHECK_FALSE(spin.is_allowed());
  spin.reached_after_sleep(1us);
  spin.reached_while_spinning();
  spin.reached_after_sleep(1s);
  CHECK(spin.time() == 0us);
}
