#include "runtime/negotiation/held_requests.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// Of two buckets: 0 and 1, 2 and 3.
const StepPlan kPlan({{0, 1}, {1, 1}, {2, 1, true}, {3, 1}}, 100, [](StepPlan::Id id) { return id; });

bool hold(HeldRequests& held, StepPlan::Id id) {
  std::list<Request> requests{{std::to_string(id), {}}};
  return held.hold(id, requests);
}

}  // namespace

bool hold_unnamed(HeldRequests& held, StepPlan::Id id) {
  std::list<Request> requests{{std::string(kUnnamed) + std::to_string(id), {}}};
  return held.hold(id, requests);
}

TEST_CASE("unnamed operations are held in the plan's order only", "[runtime][unit]") {
  HeldRequests held;
  held.follow(kPlan, false);
  CHECK(hold_unnamed(held, 1));
  CHECK_FALSE(hold_unnamed(held, 0));
  CHECK_FALSE(hold_unnamed(held, 1));  // it may be in flight twice
  CHECK(hold_unnamed(held, 3));
  CHECK_FALSE(hold_unnamed(held, 2));
  CHECK(held.holds_unnamed());
  std::string names;
  for (const Request& request : held.release()) names += request.name.back();
  CHECK(names == "13");
  CHECK_FALSE(held.holds_unnamed());

  held.follow(kPlan, false);
  CHECK(hold_unnamed(held, 0));
  CHECK(hold(held, 3));  // has a name
  CHECK(hold_unnamed(held, 1));
  CHECK(held.take_full() == 0);
  CHECK_FALSE(held.holds_unnamed());
  CHECK(hold_unnamed(held, 2));
  CHECK(held.take_full() == 1);
  CHECK(hold_unnamed(held, 0));  // of the next step
}

TEST_CASE("without a plan nothing is held back", "[runtime][unit]") {
  HeldRequests held;
  CHECK_FALSE(hold(held, 0));
  held.follow(StepPlan(), false);
  CHECK_FALSE(hold(held, 0));
  held.announced_alone(0);
  CHECK(held.release().empty());
}

TEST_CASE("buckets are complete in any order, and said in the plan's", "[runtime][unit]") {
  HeldRequests held;
  held.follow(kPlan, false);
  CHECK_FALSE(hold(held, 4));
  for (const StepPlan::Id id : {3u, 2u, 1u}) CHECK(hold(held, id));
  CHECK_FALSE(held.has_full());
  CHECK(held.missing() == 1);
  CHECK(hold(held, 0));
  REQUIRE(held.has_full());
  CHECK(held.take_full() == 0);
  REQUIRE(held.has_full());
  CHECK(held.take_full() == 1);
  CHECK(held.empty());
  CHECK(held.missing() == 2);
}

TEST_CASE("a rank that departs holds nothing until a cycle is over in which all that it said is decided",
          "[runtime][unit]") {
  HeldRequests held;
  held.follow(kPlan, false);
  SECTION("with what it holds") {
    for (const StepPlan::Id id : {2u, 0u}) hold(held, id);
    const auto all = held.release();
    REQUIRE(all.size() == 2);
    CHECK(all.front().name == "0");
    CHECK(all.back().name == "2");
  }
  SECTION("by an operation that it says alone") {
    held.announced_alone(4);
    CHECK(hold(held, 0));
    held.announced_alone(1);
    held.release();
  }
  CHECK(held.empty());
  CHECK_FALSE(hold(held, 1));
  held.end_cycle(/*is_silent=*/false);
  CHECK_FALSE(hold(held, 1));
  held.end_cycle(/*is_silent=*/true);
  CHECK(hold(held, 1));
}

TEST_CASE("a plan that begins within a cycle waits for the next", "[runtime][unit]") {
  HeldRequests held;
  held.follow(kPlan, /*is_within=*/true);
  CHECK_FALSE(hold(held, 0));
  held.end_cycle(true);
  CHECK(hold(held, 0));
}
