#include "runtime/engine/engine_state.hpp"

#include "tests/catch.hpp"
#include "tests/runtime/engine/lone_state.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::MutexLock;
using runjob::Status;

TEST_CASE("a state without a timeline gets one that records nothing", "[runtime][unit]") {
  const EngineState state(lone_parts());
  REQUIRE(state.parts.timeline);
  CHECK_FALSE(state.parts.timeline->is_on());
  CHECK(state.self == "rank 0 on a");
  CHECK(state.size == 1);
}

TEST_CASE("operations are accepted until this rank stops or the job does", "[runtime][unit]") {
  EngineState state(lone_parts());
  const MutexLock lock(state.mutex);
  CHECK(state.is_open());
  SECTION("this rank") {
    state.farewell = {Status(), {}};
    CHECK(state.is_stopping());
  }
  SECTION("the job") {
    state.phase.enter(PhaseEvent::kEnd, Status(Errc::kPeerLost, "gone"));
    CHECK_FALSE(state.is_stopping());
  }
  CHECK_FALSE(state.is_open());
}

TEST_CASE("the backend is at work while it connects and while it runs an operation", "[runtime][unit]") {
  EngineState state(lone_parts());
  std::int32_t value = 1;
  put(state, sum_of("x", value));
  const MutexLock lock(state.mutex);
  CHECK(state.is_working());
  state.phase.enter(PhaseEvent::kConnected, {});
  CHECK_FALSE(state.is_working());
  state.work.operations.set_running(*state.work.operations.find("x"));
  CHECK(state.is_working());
}

TEST_CASE("a report is kept for the watcher, which is woken", "[runtime][unit]") {
  EngineState state(lone_parts());
  {
    const MutexLock lock(state.mutex);
    state.report(LifeReport::Type::kFailed, Status(Errc::kTimeout, "slow"));
  }
  REQUIRE(reports_of(state).size() == 1);
  CHECK(reports_of(state)[0].status.message() == "slow");
  std::vector<pollfd> none;
  state.poll.wait(none, {});  // returns
}

TEST_CASE("a driver that leaves its role has the next one take over", "[runtime][unit]") {
  EngineState state(lone_parts());
  set_running(state);
  const MutexLock lock(state.mutex);
  state.work.open_role();
  REQUIRE(state.work.take_role(state.phase));
  state.leave_role();
  CHECK(state.work.take_role(state.phase));
}
