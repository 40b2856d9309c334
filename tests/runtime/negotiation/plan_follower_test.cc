#include "runtime/negotiation/plan_follower.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using namespace std::chrono_literals;

namespace {

PlanFollower::Clock::time_point time_now;

PlanFollower::Clock::time_point now() {
  return time_now;
}

std::uint64_t hash_of(PlanFollower::Id id) {
  return 1000 + id;
}

Request request(const std::string& name = "x") {
  return {name, {}};
}

/// A rank that has agreed on the step of operations 0, 1 and 2 so often that it has a plan of one bucket for it.
struct Planned : PlanFollower {
  Planned() : PlanFollower({.bucket_bytes = 1u << 20, .patience = 20ms}) {
    for (int i = 0; i < 3 && !has_plan(); ++i) agree_on_step();
    REQUIRE(has_plan());
  }

  std::optional<std::list<Request>> agree_on_step() {
    for (const Id id : {0u, 1u, 2u}) agreed(id, 100, /*begins=*/id == 0);
    return end_round(/*is_busy=*/false, hash_of);
  }
  bool hold_one(Id id) {
    std::list<Request> each{request()};
    return hold(id, each);
  }
};

}  // namespace

TEST_CASE("a step that repeats becomes a plan, unless there are to be none", "[runtime][unit]") {
  Planned rank;
  CHECK(rank.hold_one(0));
  CHECK_FALSE(rank.hold_one(7));
  PlanFollower without({.bucket_bytes = 0, .patience = 20ms});
  for (int i = 0; i < 9; ++i) {
    for (const PlanFollower::Id id : {0u, 1u, 2u}) without.agreed(id, 100, id == 0);
    CHECK_FALSE(without.end_round(false, hash_of));
  }
  CHECK_FALSE(without.has_plan());
}

TEST_CASE("requests are held until their bucket is complete, in any order", "[runtime][unit]") {
  Planned rank;
  CHECK_FALSE(rank.missing());
  CHECK(rank.hold_one(2));
  CHECK(rank.hold_one(0));
  CHECK(rank.missing() == 1u);
  CHECK_FALSE(rank.has_full());
  CHECK(rank.hold_one(1));
  CHECK_FALSE(rank.missing());
  REQUIRE(rank.has_full());
  const PlanFollower::Bucket bucket = rank.take_full();
  CHECK(rank.held() == 0);
  CHECK(rank.ids(bucket) == std::vector<PlanFollower::Id>{0, 1, 2});
  CHECK_THROWS_WITH(rank.ids(bucket ^ 1), "a rank follows a plan that is not this one's");
}

TEST_CASE("the wait for a bucket is given up when nothing new has come for long enough", "[runtime][unit]") {
  Planned rank;
  time_now = {};
  CHECK_FALSE(rank.hold(now));
  rank.hold_one(0);
  const auto first = rank.hold(now);
  REQUIRE(first);
  CHECK(first->lacks == 2);
  CHECK(first->due == time_now + 20ms);
  time_now += 5ms;
  CHECK(rank.hold(now)->due == first->due);
  rank.hold_one(1);
  CHECK(rank.hold(now)->due == time_now + 20ms);
  rank.hold_one(2);
  CHECK_FALSE(rank.hold(now));
  rank.take_full();
  time_now += 30ms;
  rank.hold_one(0);
  CHECK(rank.hold(now)->due == time_now + 20ms);
}

TEST_CASE("a rank that departs holds nothing until the step is over", "[runtime][unit]") {
  Planned rank;
  SECTION("by a release") {
    rank.hold_one(0);
    CHECK(rank.release().size() == 1);
  }
  SECTION("by an operation that is announced alone") {
    rank.announced_alone(1);
  }
  CHECK_FALSE(rank.hold_one(1));
  CHECK_FALSE(rank.agree_on_step());
  CHECK(rank.hold_one(1));
}

TEST_CASE("the plan ends when all ranks agree that it does, and what was held is given back", "[runtime][unit]") {
  Planned rank;
  rank.hold_one(0);
  SECTION("for a join") {
    rank.end_plan();
  }
  SECTION("for an operation of the plan that is forgotten") {
    rank.forgotten(2);
  }
  const auto released = rank.end_round(false, hash_of);
  REQUIRE(released);
  CHECK(released->size() == 1);
  CHECK_FALSE(rank.has_plan());
  CHECK_FALSE(rank.hold_one(0));
}

TEST_CASE("an operation outside the plan may be forgotten", "[runtime][unit]") {
  Planned rank;
  rank.forgotten(7);
  CHECK_FALSE(rank.end_round(false, hash_of));
  CHECK(rank.has_plan());
}

TEST_CASE("a bucket that the ranks do not announce at once in three steps is given up", "[runtime][unit]") {
  Planned rank;
  for (int step = 0; step < StepPlan::kMostFailures; ++step) {
    REQUIRE(rank.has_plan());
    rank.agree_on_step();
  }
  CHECK_FALSE(rank.has_plan());
}

TEST_CASE("a bucket that the ranks announce at once is kept", "[runtime][unit]") {
  Planned rank;
  for (int step = 0; step < 3 * StepPlan::kMostFailures; ++step) {
    for (const PlanFollower::Id id : {0u, 1u, 2u}) REQUIRE(rank.hold_one(id));
    rank.agreed_on_bucket(rank.take_full());
    rank.agree_on_step();
  }
  CHECK(rank.has_plan());
}

TEST_CASE("a loop around one operation needs no plan", "[runtime][unit]") {
  PlanFollower rank({.bucket_bytes = 1, .patience = 20ms});
  for (int i = 0; i < 4; ++i) {
    rank.agreed(5, 100, true);
    rank.end_round(false, hash_of);
  }
  CHECK(rank.is_only(5));
  CHECK_FALSE(rank.has_plan());
  rank.interrupted();
  CHECK_FALSE(rank.is_only(5));
}
