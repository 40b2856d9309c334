#include "runtime/life/job_life.hpp"

#include <cerrno>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;
using Decided = LifeDecision::Type;
using Reported = LifeReport::Type;

namespace {

const Members kMembers{"alpha", "alpha", "beta"};

LifeReport failure(Errc code, const std::string& message) {
  return {.type = Reported::kFailed, .status = Status(code, message)};
}

}  // namespace

TEST_CASE("a lost rank aborts the job and is named with its host, and nothing is decided after that",
          "[runtime][unit]") {
  JobLife life(kMembers);
  life.lost(2);
  const auto decisions = life.take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].type == Decided::kAbort);
  CHECK(decisions[0].status.code() == Errc::kPeerLost);
  CHECK_THAT(decisions[0].status.message(), ContainsSubstring("rank 2 on beta is gone"));
  life.lost(1);
  life.receive(0, {.type = Reported::kGoodbye});
  CHECK(life.take().empty());
}

TEST_CASE("a failed backend waits for the loss that explains it, and stands alone without one", "[runtime][unit]") {
  JobLife life(kMembers);
  life.receive(1, failure(Errc::kTimeout, "no data for 30 s"));
  life.receive(0, failure(Errc::kTimeout, "a later one"));
  CHECK(life.is_suspicious());
  CHECK(life.take().empty());
  SECTION("loss") {
    life.lost(2);
    CHECK_THAT(life.take().at(0).status.message(), ContainsSubstring("rank 2 on beta is gone"));
  }
  SECTION("none") {
    life.give_up();
    const auto decisions = life.take();
    CHECK(decisions.at(0).type == Decided::kAbort);
    CHECK(decisions.at(0).status.code() == Errc::kTimeout);
    CHECK(decisions.at(0).status.message() == "rank 1 on alpha: no data for 30 s");
  }
  CHECK_FALSE(life.is_suspicious());
}

TEST_CASE("changed bytes explain the end of a connection that another rank has reported first", "[runtime][unit]") {
  JobLife life(kMembers);
  life.receive(0, failure(Errc::kConnect, "the connection to rank 1 has ended"));
  life.receive(1, failure(Errc::kAuth, "bytes that rank 0 has not sealed"));
  life.receive(2, failure(Errc::kAuth, "a later one"));
  life.give_up();
  CHECK(life.take().at(0).status.message() == "rank 1 on alpha: bytes that rank 0 has not sealed");
}

TEST_CASE("without a failure there is nothing to give up", "[runtime][unit]") {
  JobLife life(kMembers);
  life.give_up();
  CHECK(life.take().empty());
}

TEST_CASE("a process set's failure keeps its own words", "[runtime][unit]") {
  JobLife life(kMembers);
  life.receive(1, {.type = Reported::kSetFailed, .status = Status(Errc::kTimeout, "rank 2 on beta is slow")});
  CHECK(life.is_suspicious());
  life.give_up();
  CHECK(life.take().at(0).status.message() == "rank 2 on beta is slow");
}

TEST_CASE("a process set that is given up ends once, for its first reason, and the others go on", "[runtime][unit]") {
  JobLife life(kMembers);
  const auto give_up = [&](int rank, int set, const std::string& why) {
    life.receive(rank, {.type = Reported::kGiveUp, .status = Status(Errc::kAborted, why), .process_set = set});
  };
  give_up(1, 7, "the first reason");
  give_up(2, 7, "another one");
  give_up(2, 8, "of another set");
  CHECK_FALSE(life.is_suspicious());
  const auto decisions = life.take();
  REQUIRE(decisions.size() == 2);
  CHECK(decisions[0].type == Decided::kGiveUp);
  CHECK(decisions[0].process_set == 7);
  CHECK(decisions[0].status.message() == "the first reason");
  CHECK(decisions[1].process_set == 8);
  give_up(0, 0, "all of it");
  give_up(0, 9, "too late");
  const auto last = life.take();
  REQUIRE(last.size() == 1);
  CHECK(last[0].type == Decided::kAbort);
  CHECK(last[0].status.message() == "all of it");
}

TEST_CASE("after a stall all ranks are asked in what they wait, before one is blamed", "[runtime][unit]") {
  JobLife life(kMembers);
  const LifeReport stall{.type = Reported::kStalled, .status = Status(Errc::kTimeout, "x waits"), .late = 1};
  const auto waits_in = [](const std::string& operation) {
    return LifeReport{.type = Reported::kWaits, .waits = {{.operation = operation, .ranks = {}}}};
  };
  life.receive(0, stall);
  life.receive(2, stall);
  CHECK(life.is_suspicious());
  const auto asked = life.take();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].type == Decided::kAsk);
  life.receive(0, waits_in("x"));
  life.receive(2, waits_in("x"));
  CHECK(life.take().empty());
  SECTION("it waits itself, for the others") {
    life.receive(1, waits_in("y"));
    const auto decisions = life.take();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions[0].type == Decided::kAbort);
    CHECK(decisions[0].is_mutual);
    CHECK(decisions[0].late == -1);
    CHECK_THAT(decisions[0].status.message(),
               ContainsSubstring("ranks 0 (alpha), 2 (beta) wait in x and rank 1 on alpha in y"));
    CHECK_FALSE(life.is_suspicious());
  }
  SECTION("it waits in nothing") {
    life.receive(1, {.type = Reported::kWaits});
    CHECK(life.take().at(0).late == 1);
  }
  SECTION("it does not answer") {
    life.give_up();
    const auto decisions = life.take();
    CHECK(decisions.at(0).late == 1);
    CHECK_FALSE(decisions.at(0).is_mutual);
    CHECK(decisions.at(0).status.message() == "x waits");
  }
  SECTION("a rank is lost meanwhile") {
    life.lost(1);
    const auto decisions = life.take();
    CHECK(decisions.at(0).late == -1);
    CHECK(decisions.at(0).status.code() == Errc::kPeerLost);
  }
  SECTION("changed bytes explain more") {
    life.receive(2, failure(Errc::kAuth, "bytes that nobody has sealed"));
    life.receive(1, waits_in("y"));
    CHECK(life.take().empty());
    life.give_up();
    CHECK(life.take().at(0).status.code() == Errc::kAuth);
  }
}

TEST_CASE("a goodbye may have a reason of its own", "[runtime][unit]") {
  JobLife life(kMembers);
  life.receive(1, {.type = Reported::kGoodbye, .status = Status(Errc::kAborted, "process set 2 was removed")});
  CHECK(life.take().at(0).status.message() == "process set 2 was removed");
}

TEST_CASE("the first goodbye is decided, and all are released when no rank runs anything", "[runtime][unit]") {
  JobLife life(kMembers);
  life.receive(0, {.type = Reported::kDrained});  // counts only after a goodbye
  life.receive(1, {.type = Reported::kGoodbye});
  auto decisions = life.take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].type == Decided::kLeaving);
  CHECK(decisions[0].status.code() == Errc::kAborted);
  CHECK(decisions[0].status.message() == "rank 1 on alpha called shutdown()");
  life.receive(2, {.type = Reported::kGoodbye});
  life.receive(0, {.type = Reported::kDrained});
  life.receive(1, {.type = Reported::kDrained});
  CHECK(life.take().empty());
  SECTION("the last drains") {
    life.receive(2, {.type = Reported::kDrained});
  }
  SECTION("the last has left without waiting") {
    life.lost(2);
  }
  decisions = life.take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].type == Decided::kReleased);
  life.lost(0);
  CHECK(life.take().empty());
}

TEST_CASE("a rank that vanishes while others leave is still a loss", "[runtime][unit]") {
  JobLife life(kMembers);
  life.receive(0, {.type = Reported::kGoodbye});
  life.take();
  life.lost(1);
  CHECK(life.take().at(0).status.code() == Errc::kPeerLost);
}

TEST_CASE("a rank that goes before its devices are done ends the job, with the failure that it has reported if any",
          "[runtime][unit]") {
  JobLife life(kMembers);
  const bool has_failed = GENERATE(false, true);
  if (has_failed) life.receive(1, failure(Errc::kDevice, "the GPU is gone"));
  life.receive(1, {.type = Reported::kGoodbye});
  life.take();
  life.receive(1, {.type = Reported::kCutOff, .status = Status(Errc::kAborted, "rank 1 left too early")});
  const auto decisions = life.take();
  REQUIRE(decisions.size() == 1);
  CHECK(decisions[0].type == Decided::kAbort);
  CHECK(decisions[0].status.message() == (has_failed ? "rank 1 on alpha: the GPU is gone" : "rank 1 left too early"));
}

TEST_CASE("records of the timeline do not touch the life of the job", "[runtime][unit]") {
  JobLife life(kMembers);
  life.receive(1, {.type = Reported::kClock});
  life.receive(1, {.type = Reported::kTrace});
  CHECK(life.take().empty());
  CHECK_FALSE(life.is_suspicious());
}

TEST_CASE("a loss by an error of the network names its rank, for the launcher", "[unit]") {
  for (const int error : {0, ETIMEDOUT}) {
    JobLife life(Members({"a", "b", "c"}));
    life.lost(2, error);
    const auto decisions = life.take();
    REQUIRE(decisions.size() == 1);
    CHECK(decisions.front().lost == (error == 0 ? -1 : 2));
  }
}
