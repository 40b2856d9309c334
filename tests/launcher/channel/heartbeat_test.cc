#include "launcher/channel/heartbeat.hpp"

#include "tests/catch.hpp"
#include "tests/launcher/manual_clock.hpp"

using namespace runjob;

namespace {

struct Beating {
  ManualClock clock;
  int beats = 0;
  int losses = 0;
  Heartbeat heartbeat{clock.make_alarm(), [this] { ++beats; }, [this] { ++losses; }};
};

}  // namespace

TEST_CASE("silence for more than the most misses ends the heartbeat once", "[unit]") {
  Beating side;
  side.heartbeat.start();
  side.heartbeat.start();
  CHECK(side.beats == 1);
  side.clock.advance(Heartbeat::kLongestSilence);
  CHECK(side.losses == 0);
  side.clock.advance(Heartbeat::kInterval);
  CHECK(side.losses == 1);
  CHECK(side.beats == 1 + Heartbeat::kMostMisses);
  CHECK(side.clock.pending() == 0);
  side.clock.advance(10 * Heartbeat::kLongestSilence);
  CHECK(side.losses == 1);
}

TEST_CASE("a sign of life in each longest silence keeps the heartbeat going", "[unit]") {
  Beating side;
  side.heartbeat.start();
  for (int i = 0; i < 20; ++i) {
    side.clock.advance(Heartbeat::kLongestSilence);
    side.heartbeat.on_sign_of_life();
  }
  CHECK(side.losses == 0);
  CHECK(side.beats == 1 + 20 * Heartbeat::kMostMisses);
}

TEST_CASE("nothing is sent or missed during a pause", "[unit]") {
  Beating side;
  side.heartbeat.start();
  side.clock.advance(Heartbeat::kLongestSilence);
  side.heartbeat.pause();
  side.clock.advance(10 * Heartbeat::kLongestSilence);
  CHECK(side.beats == 1 + Heartbeat::kMostMisses);
  CHECK(side.losses == 0);
  side.heartbeat.start();
  side.clock.advance(Heartbeat::kLongestSilence);
  CHECK(side.losses == 0);
  side.clock.advance(Heartbeat::kInterval);
  CHECK(side.losses == 1);
}

TEST_CASE("a beat that pauses the heartbeat is the last one", "[unit]") {
  ManualClock clock;
  int beats = 0;
  Heartbeat* self = nullptr;
  Heartbeat heartbeat(
      clock.make_alarm(),
      [&] {
        if (++beats == 3) self->pause();
      },
      [] { FAIL("it was paused"); });
  self = &heartbeat;
  heartbeat.start();
  clock.advance(10 * Heartbeat::kInterval);
  CHECK(beats == 3);
}

TEST_CASE("a process that has stood still knows it, and does not blame the other side", "[unit]") {
  Beating side;
  side.heartbeat.start();
  side.clock.advance(3 * Heartbeat::kInterval);
  CHECK(side.heartbeat.standstill().count() == 0);
  side.clock.stand_still(std::chrono::seconds(9) + Heartbeat::kInterval);
  CHECK(side.heartbeat.standstill() == std::chrono::seconds(9));
  CHECK(side.losses == 0);
  side.heartbeat.pause();
  CHECK(side.heartbeat.standstill() == std::chrono::seconds(9));
  side.clock.advance(std::chrono::seconds(31));
  CHECK(side.heartbeat.standstill().count() == 0);
}

TEST_CASE("a pause is no standstill", "[unit]") {
  Beating side;
  side.heartbeat.start();
  side.heartbeat.pause();
  side.clock.stand_still(std::chrono::seconds(9));
  CHECK(side.heartbeat.standstill().count() == 0);
  side.heartbeat.start();
  CHECK(side.heartbeat.standstill().count() == 0);
}
