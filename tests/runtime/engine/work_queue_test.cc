#include "runtime/engine/work_queue.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

Submission named(const std::string& name) {
  Submission submission;
  submission.name = name;
  return submission;
}

PhaseRecord running() {
  PhaseRecord phase;
  phase.enter(PhaseEvent::kConnected, {});
  return phase;
}

PhaseRecord ended() {
  PhaseRecord phase;
  phase.enter(PhaseEvent::kEnd, runjob::Status(runjob::Errc::kAborted, "over"));
  return phase;
}

struct Queue : WorkQueue {
  Queue() : WorkQueue(std::chrono::microseconds(0), 1) { open_role(); }
};

}  // namespace

TEST_CASE("requests are taken once, in their order", "[runtime][unit]") {
  Queue queue;
  queue.add("a", {}, false);
  queue.add("b", {}, false);
  CHECK(queue.requests() == 2);
  const auto requests = queue.take_requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests.back().name == "b");
  CHECK(queue.take_requests().empty());
}

TEST_CASE("an operation is in flight by its entry or by its name alone", "[runtime][unit]") {
  Queue queue;
  CHECK_FALSE(queue.is_in_flight("x"));
  queue.at_once = {"x", Kind::kAllreduce};
  CHECK(queue.is_in_flight("x"));
  queue.operations.insert(named("y"));
  CHECK(queue.is_in_flight("y"));
}

TEST_CASE("one thread at a time has the role of the driver", "[runtime][unit]") {
  Queue queue;
  const PhaseRecord phase = running();
  CHECK_FALSE(queue.has_driver());
  CHECK(queue.take_role(phase));
  CHECK_FALSE(queue.take_role(phase));
  CHECK(queue.role() == DriverRole::kDriving);
  queue.set_asleep(true);
  CHECK(queue.role() == DriverRole::kAsleep);
  CHECK(queue.has_driver());
  CHECK_FALSE(queue.take_role(phase));
  queue.set_asleep(false);
  CHECK(queue.role() == DriverRole::kDriving);
  queue.leave_role();
  CHECK(queue.role() == DriverRole::kVacant);
  CHECK_FALSE(queue.take_role(ended()));
}

TEST_CASE("there is no driver before the rounds begin and after they have failed", "[runtime][unit]") {
  WorkQueue unconnected(std::chrono::microseconds(0), 1);
  CHECK_FALSE(unconnected.take_role(running()));
  Queue queue;
  REQUIRE(queue.take_role(running()));
  queue.close_role();
  CHECK_FALSE(queue.has_driver());
  queue.leave_role();
  CHECK(queue.role() == DriverRole::kClosed);
  queue.operations.insert(named("x"));
  CHECK_FALSE(queue.has_work(running(), false));
}

TEST_CASE("a driver is needed while operations are in flight", "[runtime][unit]") {
  Queue queue;
  CHECK_FALSE(queue.has_work(running(), false));
  const auto completion = queue.operations.insert(named("x"));
  CHECK(queue.has_work(running(), false));
  CHECK_FALSE(queue.has_work(ended(), false));
  queue.hold = PlanFollower::Hold{2, {}};
  SECTION("but not while all of them wait for a bucket") {
    CHECK_FALSE(queue.has_work(running(), false));
    CHECK(queue.awaits_bucket(false));
  }
  SECTION("unless the bucket may be complete") {
    queue.add("a", {}, false);
    CHECK_FALSE(queue.has_work(running(), false));
    queue.add("b", {}, false);
    CHECK(queue.has_work(running(), false));
  }
  SECTION("or a thread waits for one of them") {
    queue.awaited.push_back(completion.get());
    CHECK(queue.has_work(running(), false));
    completion->finish({});
    CHECK_FALSE(queue.has_work(running(), false));
  }
  SECTION("or this rank is stopping") {
    CHECK(queue.has_work(running(), true));
  }
}
