#include "launcher/channel/alarm.hpp"

#include <string>

#include <boost/asio/io_context.hpp>

#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

TEST_CASE("an alarm calls once, not before its time", "[unit]") {
  boost::asio::io_context context;
  const auto alarm = make_alarm(context.get_executor());
  const auto due = alarm->now() + 5ms;
  int calls = 0;
  alarm->set(due, [&] {
    ++calls;
    CHECK(alarm->now() >= due);
  });
  CHECK(calls == 0);
  context.run();
  CHECK(calls == 1);
}

TEST_CASE("a call that was replaced or taken back is not made", "[unit]") {
  boost::asio::io_context context;
  const auto alarm = make_alarm(context.get_executor());
  std::string calls;
  alarm->set(alarm->now() + 1h, [&] { calls += "replaced "; });
  alarm->set(alarm->now(), [&] { calls += "kept "; });
  context.run();
  CHECK(calls == "kept ");

  alarm->set(alarm->now() + 1h, [&] { calls += "taken back "; });
  alarm->cancel();
  context.restart();
  context.run();
  CHECK(calls == "kept ");
}

TEST_CASE("the time in which the job is stopped does not count", "[unit]") {
  boost::asio::io_context context;
  StoppedTime stopped;
  const auto alarm = make_alarm(context.get_executor(), stopped);
  const auto due = alarm->now() + 5ms;
  int calls = 0;
  alarm->set(due, [&] {
    ++calls;
    CHECK(alarm->now() >= due);
  });
  stopped.total += 20ms;
  CHECK(alarm->now() < due);
  context.run();
  CHECK(calls == 1);
}

TEST_CASE("a call may set the alarm again", "[unit]") {
  boost::asio::io_context context;
  const auto alarm = make_alarm(context.get_executor());
  int calls = 0;
  std::function<void()> again = [&] {
    if (++calls < 3) alarm->set(alarm->now(), again);
  };
  alarm->set(alarm->now(), again);
  context.run();
  CHECK(calls == 3);
}
