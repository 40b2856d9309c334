#include "runtime/links/silence_watch.hpp"

#include <sys/socket.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/tcp_pair.hpp"

using namespace runjob::runtime;
using namespace std::chrono_literals;
using runjob::UniqueFd;

namespace {

constexpr TcpProgress kIdle{false, false, 90s, 90s};

/// Looks every 250 ms from `from` to `to`, the last time included, with the account that `progress_at` makes of the
/// time. Returns when the watch reports the host out of reach; -1 if never.
template <class ProgressAt>
std::chrono::milliseconds lost_at(SilenceWatch& watch, std::chrono::milliseconds from, std::chrono::milliseconds to,
                                  ProgressAt progress_at) {
  for (auto time = from; time <= to; time += SilenceWatch::kLookEvery) {
    if (watch.look(progress_at(time), SilenceWatch::Clock::time_point(1h + time))) return time;
  }
  return -1ms;
}

}  // namespace

TEST_CASE(
    "a host that acknowledges nothing for five seconds is out of reach: with data that are repeated, and with probes",
    "[runtime]") {
  SilenceWatch watch;
  const bool is_data = GENERATE(true, false);
  CHECK(lost_at(watch, 0s, 20s, [&](std::chrono::milliseconds time) {
          if (time < 500ms) return kIdle;
          return TcpProgress{is_data, !is_data, is_data ? time % 300ms : 90s, time};
        }) == 5500ms);
}

TEST_CASE("a connection that was idle gets time to answer", "[runtime]") {
  SilenceWatch watch;
  CHECK(lost_at(watch, 0s, 20s, [](std::chrono::milliseconds time) {
          return TcpProgress{true, false, time % 1600ms, 90s + time};
        }) == 5s);
}

TEST_CASE("an acknowledgement begins the five seconds anew, also one between two looks", "[runtime]") {
  SilenceWatch watch;
  CHECK(lost_at(watch, 0s, 20s, [](std::chrono::milliseconds time) {
          return TcpProgress{true, false, 0ms, time < 4s ? time + 1s : time - 3900ms};
        }) == 9s);
}

TEST_CASE("a host whose process reads nothing answers, and is not out of reach", "[runtime]") {
  SilenceWatch watch;
  // The kernel repeats the data or probes the closed window after ever longer times, and each is answered in time.
  CHECK(lost_at(watch, 0s, 300s, [](std::chrono::milliseconds time) {
          const auto since = time % 100s;
          return TcpProgress{true, since < 250ms, since, since < 250ms ? 100s : since};
        }) == -1ms);
}

TEST_CASE("time in which nobody has looked does not count", "[runtime]") {
  SilenceWatch watch;
  const auto unanswered = [](std::chrono::milliseconds) { return TcpProgress{true, true, 0ms, 600s}; };
  CHECK(lost_at(watch, 0s, 2s, unanswered) == -1ms);
  CHECK(lost_at(watch, 60s, 62s, unanswered) == -1ms);
  CHECK(lost_at(watch, 62s + SilenceWatch::kLookEvery, 70s, unanswered) == 65s);
}

TEST_CASE("the kernel's account of a connection: nothing is out when all has arrived", "[runtime][net]") {
  const TcpPair ends;
  char byte = 'x';
  REQUIRE(::send(ends.near.get(), &byte, 1, 0) == 1);
  REQUIRE(::recv(ends.far.get(), &byte, 1, 0) == 1);
  REQUIRE(::send(ends.far.get(), &byte, 1, 0) == 1);  // with the acknowledgement
  REQUIRE(::recv(ends.near.get(), &byte, 1, 0) == 1);
  const auto progress = tcp_progress(ends.near.get());
  REQUIRE(progress.has_value());
  CHECK_FALSE(progress->has_data_out);
  CHECK_FALSE(progress->is_unanswered());
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  const UniqueFd one(pair[0]), other(pair[1]);
  CHECK_FALSE(tcp_progress(one.get()).has_value());
}
