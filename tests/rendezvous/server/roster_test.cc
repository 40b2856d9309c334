#include "rendezvous/server/roster.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

constexpr auto kStart = Roster::TimePoint() + 1h;

}  // namespace

TEST_CASE("a missing rank is named with how far its process has come", "[unit]") {
  Roster roster({"s1", "s2"}, 30s);
  const auto why = [&](Roster::TimePoint now) { return roster.why_missing(1, "gather 'x'", now); };
  CHECK(why(kStart) == "rank 1 on s2: process not started");
  roster.started(1, 812, kStart);
  CHECK(why(kStart + 20900ms) == "rank 1 on s2 has not called init() for 20 s (pid 812)");
  roster.joined(1, kStart + 21s);
  CHECK(why(kStart + 22s) == "rank 1 on s2 has not reached gather 'x'");
  roster.exited(1, "status 0");
  CHECK(why(kStart + 23s) == "rank 1 on s2: process exited (status 0)");
  roster.started(0, 7, kStart);
  roster.exited(0, "signal 9 (Killed)");
  CHECK(roster.why_missing(0, "gather 'x'", kStart) == "rank 0 on s1 ended without calling init() (signal 9 (Killed))");
}

TEST_CASE("nobody is overdue before a rank has joined, nor before the start timeout", "[unit]") {
  Roster roster({"a", "b", "c"}, 30s);
  roster.started(0, 10, kStart);
  roster.started(1, 11, kStart);
  CHECK(roster.overdue(kStart + 1h) == "");
  roster.joined(0, kStart + 5s);
  CHECK(roster.overdue(kStart + 34999ms) == "");
  CHECK(roster.overdue(kStart + 35s) ==
        "rank 1 on b has not called init() for 35 s (pid 11)\nrank 2 on c: process not "
        "started");
  roster.joined(1, kStart + 36s);
  roster.joined(2, kStart + 36s);
  CHECK(roster.overdue(kStart + 1h) == "");
}

TEST_CASE("a rank that exited without joining is overdue at once, while another one waits", "[unit]") {
  Roster roster({"a", "a"}, 30s);
  roster.started(0, 10, kStart);
  roster.started(1, 11, kStart);
  roster.exited(1, "status 0");
  CHECK(roster.overdue(kStart) == "");
  roster.joined(0, kStart);
  CHECK(roster.overdue(kStart) == "rank 1 on a ended without calling init() (status 0)");
  roster.exited(0, "status 1");
  CHECK(roster.overdue(kStart + 1h) == "");
}

TEST_CASE("the news of a join may come before the news of the start", "[unit]") {
  Roster roster({"a", "b"}, 1s);
  roster.joined(0, kStart);
  roster.started(0, 10, kStart);
  CHECK(roster.why_missing(0, "barrier 'y'", kStart) == "rank 0 on a has not reached barrier 'y'");
  roster.started(0, 11, kStart);
  CHECK(roster.why_missing(0, "barrier 'y'", kStart) == "rank 0 on a has not called init() for 0 s (pid 11)");
}

TEST_CASE("ranks outside the job change nothing", "[unit]") {
  Roster roster({"a"}, 1s);
  roster.joined(1, kStart);
  roster.started(-1, 1, kStart);
  roster.exited(7, "status 0");
  CHECK(roster.overdue(kStart + 1h) == "");
  CHECK(roster.to_json(kStart)["not_started"] == 1);
}

TEST_CASE("at most ten missing ranks are listed, then their number", "[unit]") {
  Roster roster(std::vector<std::string>(13, "a"), 0s);
  roster.joined(0, kStart);
  const std::string text = roster.overdue(kStart);
  CHECK(std::count(text.begin(), text.end(), '\n') == 10);
  CHECK_THAT(text, ContainsSubstring("rank 10 on a: process not started\nand 2 more"));
  CHECK(roster.to_json(kStart)["not_joined"].size() == 10);
  CHECK(first_ten({}, "; ") == "");
  CHECK(first_ten({"a", "b"}, "; ") == "a; b");
}

TEST_CASE("the status counts ranks by stage", "[unit]") {
  Roster roster({"a", "a", "a", "a"}, 1s);
  roster.started(1, 11, kStart);
  roster.joined(2, kStart);
  roster.exited(3, "status 1");
  const nlohmann::json status = roster.to_json(kStart);
  CHECK(status["not_started"] == 1);
  CHECK(status["started"] == 1);
  CHECK(status["joined"] == 1);
  CHECK(status["exited_without_joining"] == 1);
  CHECK(status["not_joined"].size() == 3);
}
