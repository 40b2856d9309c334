#include "launcher/heartbeat.hpp"

#include <boost/asio/io_context.hpp>

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("silence for more than the most misses ends the heartbeat once", "[unit]") {
  boost::asio::io_context context;
  int beats = 0;
  int losses = 0;
  Heartbeat heartbeat(
      context.get_executor(), [&] { ++beats; }, [&] { ++losses; }, std::chrono::milliseconds(1));
  heartbeat.start();
  heartbeat.start();
  context.run();
  CHECK(losses == 1);
  CHECK(beats == 1 + Heartbeat::kMostMisses);
}

TEST_CASE("signs of life keep it going, a pause lets it rest", "[unit]") {
  boost::asio::io_context context;
  int beats = 0;
  int losses = 0;
  Heartbeat* self = nullptr;
  Heartbeat heartbeat(
      context.get_executor(),
      [&] {
        if (++beats < 100) return self->on_sign_of_life();
        if (beats == 100) return self->pause();
      },
      [&] { ++losses; }, std::chrono::milliseconds(1));
  self = &heartbeat;
  heartbeat.start();
  context.run();
  CHECK(beats == 100);
  CHECK(losses == 0);

  heartbeat.start();
  context.restart();
  context.run();
  CHECK(losses == 1);
}
