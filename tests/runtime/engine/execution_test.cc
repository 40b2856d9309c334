#include "runtime/engine/execution.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/engine/lone_state.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::MutexLock;
using runjob::Status;

namespace {

const Status kLeft(Errc::kAborted, "rank 1 called shutdown()");

class BrokenBackend : public LocalBackend {
 public:
  Status run(const Call&) override { return Status(Errc::kTimeout, "no data"); }
};

class CountingBackend : public LocalBackend {
 public:
  Status run(const Call& call) override {
    ++calls;
    return LocalBackend::run(call);
  }
  int calls = 0;
};

/// An execution whose rounds have begun, with an operation "x" in flight.
struct Started {
  explicit Started(std::unique_ptr<Backend> backend = std::make_unique<LocalBackend>())
      : state(lone_parts(std::move(backend))), exchange(state.parts.backends->host().rounds(), 0, {"a"}, {}, nullptr) {
    execution.start(exchange);
    set_running(state);
    const MutexLock lock(state.mutex);
    state.rounds = &state.parts.backends->host().rounds();
    state.work.open_role();
  }

  void run(RoundExchange::Outcome outcome) { execution.run(outcome); }

  std::int32_t value = 1;
  EngineState state;
  RoundExchange exchange;
  Execution execution{state};
  std::shared_ptr<Completion> completion = put(state, sum_of("x", value));
};

RoundExchange::Outcome decided(const std::string& name, Decision::Type type = Decision::Type::kExecute) {
  Decision decision;
  decision.type = type;
  decision.name = name;
  if (type == Decision::Type::kReject) decision.status = Status(Errc::kMismatch, "they disagree");
  return {{std::move(decision)}, false};
}

}  // namespace

TEST_CASE("an agreed operation is run and finished", "[runtime][unit]") {
  Started ranks;
  ranks.run(decided("x"));
  CHECK(outcome(*ranks.completion).ok());
  const MutexLock lock(ranks.state.mutex);
  CHECK(ranks.state.work.operations.empty());
}

TEST_CASE("a rejected operation ends with the disagreement", "[runtime][unit]") {
  Started ranks;
  ranks.run(decided("x", Decision::Type::kReject));
  CHECK(outcome(*ranks.completion).message() == "they disagree");
}

TEST_CASE("a failed operation is reported, and waits for the decision on the cause", "[runtime][unit]") {
  Started ranks(std::make_unique<BrokenBackend>());
  ranks.run(decided("x"));
  CHECK_FALSE(ranks.completion->done());
  REQUIRE(reports_of(ranks.state).size() == 1);
  CHECK(reports_of(ranks.state)[0].type == LifeReport::Type::kFailed);
  CHECK(reports_of(ranks.state)[0].status.message() == "no data");
  REQUIRE(ranks.execution.enter(PhaseEvent::kEnd, Status(Errc::kPeerLost, "rank 1 is gone")));
  CHECK(outcome(*ranks.completion).message() == "rank 1 is gone");
}

TEST_CASE("an operation that fails after a rank has left ends with that reason", "[runtime][unit]") {
  Started ranks(std::make_unique<BrokenBackend>());
  REQUIRE(ranks.execution.enter(PhaseEvent::kLeaving, kLeft));
  CHECK_FALSE(ranks.completion->done());  // the rounds may still complete it
  ranks.run(decided("x"));
  CHECK(outcome(*ranks.completion).message().starts_with(kLeft.message() + " while rank 0 on "));
  CHECK(reports_of(ranks.state).empty());
}

TEST_CASE("an operation that is agreed on when this rank has ended its part is not run", "[runtime][unit]") {
  // shutdown() aborts a backend that is at work, and no other: what began after that could wait for ever.
  auto backend = std::make_unique<CountingBackend>();
  const int& calls = backend->calls;
  Started ranks(std::move(backend));
  {
    const MutexLock lock(ranks.state.mutex);
    ranks.state.phase.enter(PhaseEvent::kEnd, kLeft);
  }
  ranks.run(decided("x"));
  CHECK(calls == 0);
  CHECK_FALSE(ranks.completion->done());  // shutdown() finishes it
}

TEST_CASE("operations that wait end with the job, and at once when there are no rounds any more", "[runtime][unit]") {
  Started ranks;
  SECTION("the end") {
    ranks.execution.enter(PhaseEvent::kEnd, kLeft);
  }
  SECTION("without rounds") {
    {
      const MutexLock lock(ranks.state.mutex);
      ranks.state.work.close_role();
    }
    ranks.execution.enter(PhaseEvent::kLeaving, kLeft);
  }
  SECTION("without rounds since a rank left") {
    ranks.execution.enter(PhaseEvent::kLeaving, kLeft);
    {
      const MutexLock lock(ranks.state.mutex);
      ranks.state.work.close_role();
    }
    ranks.execution.enter(PhaseEvent::kReleased, Status(Errc::kAborted, "the job is over"));
  }
  CHECK(outcome(*ranks.completion).message().starts_with(kLeft.message() + " while rank 0 on "));
}

TEST_CASE("a departure waits until this rank is connected", "[runtime][unit]") {
  EngineState state(lone_parts());
  Execution execution(state);
  CHECK_FALSE(execution.enter(PhaseEvent::kLeaving, kLeft));
  set_running(state);
  CHECK(execution.enter(PhaseEvent::kLeaving, kLeft));
}

TEST_CASE("an order to run what was not submitted is reported as a bug", "[runtime][unit]") {
  Started ranks;
  ranks.run(decided("unknown"));
  REQUIRE(reports_of(ranks.state).size() == 1);
  CHECK(reports_of(ranks.state)[0].status.code() == Errc::kBug);
}

TEST_CASE("a rank that has joined takes part in an operation that it has not submitted", "[runtime][unit]") {
  Started ranks;
  auto outcome_of_round = decided("joined");
  outcome_of_round.decisions[0].for_joined =
      std::make_shared<Signature>(Signature{.kind = Kind::kAllreduce, .dtype = DType::kInt32, .shape = {3}});
  ranks.run(std::move(outcome_of_round));
  CHECK(reports_of(ranks.state).empty());
  const MutexLock lock(ranks.state.mutex);
  CHECK_FALSE(ranks.state.work.operations.contains("joined"));
}
