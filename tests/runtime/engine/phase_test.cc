#include "runtime/engine/phase.hpp"

#include <array>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

const std::array kPhases{Phase::kConnecting, Phase::kRunning, Phase::kLeaving, Phase::kReleased, Phase::kEnded};
const Status kLeft(Errc::kAborted, "rank 1 called shutdown()"), kLost(Errc::kPeerLost, "rank 2 is gone");

/// A record that is in `phase`, with kLeft as its reason where it has one.
PhaseRecord record_in(Phase phase) {
  PhaseRecord record;
  if (phase >= Phase::kRunning) record.enter(PhaseEvent::kConnected, {});
  if (phase >= Phase::kLeaving) record.enter(PhaseEvent::kLeaving, kLeft);
  if (phase >= Phase::kReleased) record.enter(PhaseEvent::kReleased, kLeft);
  if (phase >= Phase::kEnded) record.enter(PhaseEvent::kEnd, kLeft);
  REQUIRE(record.phase() == phase);
  return record;
}

}  // namespace

TEST_CASE("every event leads from every phase to the one that it should", "[runtime][unit]") {
  const std::optional<Phase> waits;
  const std::array<std::optional<Phase>, 5> connected{Phase::kRunning, Phase::kRunning, Phase::kLeaving,
                                                      Phase::kReleased, Phase::kEnded};
  const std::array<std::optional<Phase>, 5> leaving{waits, Phase::kLeaving, Phase::kLeaving, Phase::kReleased,
                                                    Phase::kEnded};
  const std::array<std::optional<Phase>, 5> released{waits, Phase::kReleased, Phase::kReleased, Phase::kReleased,
                                                     Phase::kEnded};
  for (std::size_t i = 0; i < kPhases.size(); ++i) {
    CHECK(next_phase(kPhases[i], PhaseEvent::kConnected) == connected[i]);
    CHECK(next_phase(kPhases[i], PhaseEvent::kLeaving) == leaving[i]);
    CHECK(next_phase(kPhases[i], PhaseEvent::kReleased) == released[i]);
    CHECK(next_phase(kPhases[i], PhaseEvent::kEnd) == Phase::kEnded);
  }
}

TEST_CASE("a job is open until it leaves or ends", "[runtime][unit]") {
  for (const Phase phase : kPhases) {
    const PhaseRecord record = record_in(phase);
    CHECK(record.is_open() == (phase == Phase::kConnecting || phase == Phase::kRunning));
    CHECK(record.is_ended() == (phase == Phase::kEnded));
    CHECK(record.reason().ok() == record.is_open());
  }
}

TEST_CASE("an event that has to wait changes nothing", "[runtime][unit]") {
  PhaseRecord record;
  CHECK_FALSE(record.enter(PhaseEvent::kLeaving, kLeft));
  CHECK_FALSE(record.enter(PhaseEvent::kReleased, kLeft));
  CHECK(record.phase() == Phase::kConnecting);
  CHECK(record.reason().ok());
  CHECK(record.enter(PhaseEvent::kEnd, kLost));
  CHECK(record.reason().message() == kLost.message());
}

TEST_CASE("the first reason counts, but a loss explains more than a departure", "[runtime][unit]") {
  PhaseRecord record = record_in(Phase::kLeaving);
  record.enter(PhaseEvent::kReleased, Status(Errc::kAborted, "the job is over"));
  CHECK(record.reason().message() == kLeft.message());
  record.enter(PhaseEvent::kEnd, kLost);
  CHECK(record.reason().message() == kLost.message());
  record.enter(PhaseEvent::kEnd, Status(Errc::kTimeout, "too late"));
  CHECK(record.reason().message() == kLost.message());
}

TEST_CASE("an expected reason holds until the coordinator has decided on one", "[runtime][unit]") {
  PhaseRecord record = record_in(Phase::kRunning);
  record.expect(Status(Errc::kAborted, "rank 0 called shutdown()"));
  record.expect(Status(Errc::kAborted, "a second one"));
  CHECK(record.reason().message() == "rank 0 called shutdown()");
  CHECK(record.is_open());
  record.enter(PhaseEvent::kLeaving, kLeft);
  CHECK(record.reason().message() == kLeft.message());
}
