#include "runtime/engine/driver.hpp"

#include <functional>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/engine/lone_state.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::MutexLock;
using runjob::Status;

namespace {

constexpr auto kForEver = std::nullopt;

/// Rounds of which one fails, after the first `good` ones. Those that come later would have messages of old ones.
class FailingBackend : public LocalBackend {
 public:
  explicit FailingBackend(Errc code, int good = 0) : rounds_(code, good) {}
  Rounds& rounds() override { return rounds_; }

 private:
  struct Failing : LocalRounds {
    Failing(Errc code, int good) : code_(code), good_(good) {}
    bool collect(Deadline, const IsBusy&) override {
      if (good_-- != 0) return true;
      throw Error(code_, "the rounds have failed");
    }
    Errc code_;
    int good_;
  };
  Failing rounds_;
};

/// A backend whose operations fail, among ranks that go on to other rounds.
class BrokenBackend : public LocalBackend {
 public:
  Status run(const Call&) override { return Status(Errc::kTimeout, "no data"); }
  Rounds& rounds() override { return rounds_; }
  int given() const { return rounds_.given; }

 private:
  struct Counting : LocalRounds {
    void give(std::uint32_t tag, std::span<const std::byte> bytes) override {
      ++given;
      LocalRounds::give(tag, bytes);
    }
    bool is_awaited() const override { return given < 5; }
    int given = 0;
  };
  Counting rounds_;
};

/// Rounds during one of which the test does something.
class InterruptedBackend : public LocalBackend {
 public:
  Rounds& rounds() override { return rounds_; }
  /// Called in the next round, which fails then.
  void in_next_round(std::function<void()> action) { rounds_.action = std::move(action); }

 private:
  struct Interrupted : LocalRounds {
    bool collect(Deadline, const IsBusy&) override {
      if (!action) return true;
      action();
      throw Error(Errc::kAborted, "the exchange was ended");
    }
    std::function<void()> action;
  };
  Interrupted rounds_;
};

struct Started {
  explicit Started(std::unique_ptr<Backend> backend = std::make_unique<LocalBackend>())
      : state(lone_parts(std::move(backend))) {
    set_running(state);
    driver.start();
  }
  ~Started() {
    execution.enter(PhaseEvent::kEnd, Status(Errc::kAborted, "the test is over"));
    driver.stop();
  }

  bool take_role() {
    const MutexLock lock(state.mutex);
    return state.work.take_role(state.phase);
  }
  DriverRole role() {
    const MutexLock lock(state.mutex);
    return state.work.role();
  }

  std::int32_t value = 1;
  EngineState state;
  Execution execution{state};
  Driver driver{state, execution};
};

}  // namespace

TEST_CASE("a caller that has the role drives until its operation is done", "[runtime][unit]") {
  Started rank;
  REQUIRE(rank.take_role());
  const auto completion = put(rank.state, sum_of("x", rank.value));
  rank.driver.drive_until(*completion, kForEver);
  CHECK(outcome(*completion).ok());
  CHECK(rank.role() == DriverRole::kVacant);
  CHECK(rank.driver.statistics().rounds == 1);
}

TEST_CASE("the driver's own thread takes over operations that nobody drives", "[runtime][unit]") {
  Started rank;
  const auto completion = put(rank.state, sum_of("x", rank.value));
  rank.state.work_changed.notify_one();
  CHECK(outcome(*completion).ok());
}

TEST_CASE("the thread takes over from a caller that leaves operations in flight", "[runtime][unit]") {
  Started rank;
  REQUIRE(rank.take_role());
  const auto completion = put(rank.state, sum_of("x", rank.value));
  {
    const MutexLock lock(rank.state.mutex);
    rank.state.leave_role();
  }
  CHECK(outcome(*completion).ok());
}

TEST_CASE("an operation runs at once when the ranks know it", "[runtime][unit]") {
  Started rank;
  Status status;
  Completion::Result result;
  const Submission submission = sum_of("x", rank.value);
  REQUIRE(rank.take_role());
  CHECK_FALSE(rank.driver.run_at_once(lent(submission), kForEver, status, result));
  CHECK_FALSE(rank.driver.is_in_round());
  rank.driver.drive_until(*put(rank.state, submission), kForEver);
  REQUIRE(rank.take_role());
  CHECK(rank.driver.run_at_once(lent(submission), kForEver, status, result));
  CHECK(status.ok());
  CHECK(rank.value == 1);
  CHECK(rank.driver.statistics().rounds_with_data == 1);
  const MutexLock lock(rank.state.mutex);
  rank.state.leave_role();
}

TEST_CASE("rounds that fail are reported, and there is no driver after them", "[runtime][unit]") {
  const Errc code = GENERATE(Errc::kTimeout, Errc::kPeerLost);
  Started rank(std::make_unique<FailingBackend>(code));
  REQUIRE(rank.take_role());
  const auto completion = put(rank.state, sum_of("x", rank.value));
  rank.driver.drive_until(*completion, kForEver);
  CHECK(rank.role() == DriverRole::kClosed);
  CHECK_FALSE(completion->done());
  // A rank that has left reports that itself.
  REQUIRE(reports_of(rank.state).size() == (code == Errc::kPeerLost ? 0 : 1));
  rank.execution.enter(PhaseEvent::kLeaving, Status(Errc::kAborted, "rank 1 called shutdown()"));
  CHECK(outcome(*completion).message().starts_with("rank 1 called shutdown() while rank 0 on "));
}

TEST_CASE("the end of the job ends an operation only when no round reads its input any more", "[runtime][unit]") {
  Started rank(std::make_unique<InterruptedBackend>());
  REQUIRE(rank.take_role());
  rank.driver.drive_until(*put(rank.state, sum_of("x", rank.value)), kForEver);
  REQUIRE(rank.take_role());
  const auto completion = put(rank.state, sum_of("x", rank.value));  // known now: its data travel with the round
  bool was_done = true;
  static_cast<InterruptedBackend&>(rank.state.parts.backends->host()).in_next_round([&] {
    rank.execution.enter(PhaseEvent::kEnd, Status(Errc::kAborted, "rank 1 was lost"));
    was_done = completion->done();
  });
  rank.driver.drive_until(*completion, kForEver);
  CHECK_FALSE(was_done);
  CHECK_THAT(outcome(*completion).message(), ContainsSubstring("rank 1 was lost"));
}

TEST_CASE("rounds that fail after a rank has left end the operations with that reason", "[runtime][unit]") {
  Started rank(std::make_unique<FailingBackend>(Errc::kPeerLost));
  REQUIRE(rank.take_role());
  const auto completion = put(rank.state, sum_of("x", rank.value));
  rank.execution.enter(PhaseEvent::kLeaving, Status(Errc::kAborted, "rank 1 called shutdown()"));
  rank.driver.drive_until(*completion, kForEver);
  CHECK(outcome(*completion).message().starts_with("rank 1 called shutdown() while rank 0 on "));
  CHECK(reports_of(rank.state).empty());
}

TEST_CASE("no round begins after an operation has failed, although another rank waits for one", "[runtime][unit]") {
  Started rank(std::make_unique<BrokenBackend>());
  REQUIRE(rank.take_role());
  const auto completion = put(rank.state, sum_of("x", rank.value));
  SECTION("while the job goes on") {
    rank.driver.drive_until(*completion, kForEver);
    CHECK_FALSE(completion->done());
    REQUIRE(reports_of(rank.state).size() == 1);
    CHECK(reports_of(rank.state)[0].status.message() == "no data");
  }
  SECTION("after a rank has left") {
    const auto other = put(rank.state, sum_of("y", rank.value));
    rank.execution.enter(PhaseEvent::kLeaving, Status(Errc::kAborted, "rank 1 called shutdown()"));
    rank.driver.drive_until(*completion, kForEver);
    CHECK(outcome(*completion).message().starts_with("rank 1 called shutdown()"));
    CHECK(outcome(*other).message().starts_with("rank 1 called shutdown()"));
  }
  CHECK(rank.role() == DriverRole::kClosed);
  CHECK(static_cast<BrokenBackend&>(rank.state.parts.backends->host()).given() == 1);
}

TEST_CASE("rounds that fail while an operation runs at once are reported too", "[runtime][unit]") {
  Started rank(std::make_unique<FailingBackend>(Errc::kTimeout, /*good=*/1));
  const Submission submission = sum_of("x", rank.value);
  REQUIRE(rank.take_role());
  rank.driver.drive_until(*put(rank.state, submission), kForEver);
  REQUIRE(rank.take_role());
  Status status;
  Completion::Result result;
  CHECK_FALSE(rank.driver.run_at_once(lent(submission), kForEver, status, result));
  CHECK(rank.driver.is_in_round());  // it was announced
  CHECK(rank.role() == DriverRole::kClosed);
  REQUIRE(reports_of(rank.state).size() == 1);
  CHECK(reports_of(rank.state)[0].status.message() == "the rounds have failed");
  // It goes on as an operation in flight, and no round is collected for it.
  const auto completion = put(rank.state, submission);
  rank.driver.drive_until(*completion, kForEver);
  CHECK_FALSE(completion->done());
}

TEST_CASE("there are no counts before the rounds begin and after they end", "[runtime][unit]") {
  EngineState state(lone_parts());
  Execution execution(state);
  Driver driver(state, execution);
  CHECK(driver.statistics() == Statistics());
  driver.start();
  execution.enter(PhaseEvent::kEnd, Status(Errc::kAborted, "over"));
  driver.stop();
  CHECK(driver.statistics() == Statistics());
}
