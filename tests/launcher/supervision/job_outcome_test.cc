#include "launcher/supervision/job_outcome.hpp"

#include <csignal>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

using Cause = JobOutcome::Cause;

/// One rank on s1, whose process ended with `wait_status`.
JobOutcome with_end(int wait_status, bool out_of_memory = false) {
  JobOutcome outcome;
  outcome.allocation.hosts = {{"s1", 1, "", {}, "", {}}};
  outcome.allocation.placements = {{0, 1, 0, 1, 0, 1, 0}};
  outcome.ranks.resize(1);
  outcome.ranks[0].exited = Exited{wait_status, out_of_memory, false, 0, 10, 0.1};
  return outcome;
}

}  // namespace

TEST_CASE("the end of a rank in words", "[unit]") {
  CHECK(with_end(3 << 8).how(0) == "exited with status 3");
  CHECK(with_end(SIGSEGV).how(0) == "was killed by signal 11 (SIGSEGV)");
  CHECK(with_end(SIGKILL, true).how(0) ==
        "was killed by signal 9 (SIGKILL), probably by the kernel's out-of-memory killer");
  JobOutcome running = with_end(0);
  running.ranks[0].exited.reset();
  CHECK(running.how(0).empty());
}

TEST_CASE("a rank ended by itself when nothing stopped it and its status is not 0", "[unit]") {
  CHECK(with_end(3 << 8).ended_by_itself(0));
  CHECK_FALSE(with_end(0).ended_by_itself(0));
  JobOutcome stopped = with_end(SIGTERM);
  stopped.ranks[0].exited->stopped_by_us = true;
  CHECK_FALSE(stopped.ended_by_itself(0));
}

TEST_CASE("each cause has its exit status", "[unit]") {
  const auto status_of = [](Cause cause, int number = 0) {
    JobOutcome outcome = with_end(3 << 8);
    outcome.ranks[0].start_failed = StartFailed{StartFailed::Step::kExec, ENOENT, ""};
    outcome.first_failure = {cause, number, ""};
    return outcome.exit_status();
  };
  CHECK(status_of(Cause::kNone) == 0);
  CHECK(status_of(Cause::kRankFailed) == 3);
  CHECK(status_of(Cause::kNotStarted) == 127);
  CHECK(status_of(Cause::kNotReached) == 125);
  CHECK(status_of(Cause::kNoNetwork, 2) == 2);
  CHECK(status_of(Cause::kHostLost) == 125);
  CHECK(status_of(Cause::kInterrupted, SIGINT) == 130);
  CHECK(status_of(Cause::kStartTimeout) == 125);
  CHECK(status_of(Cause::kTimeLimit) == 124);
  CHECK(status_of(Cause::kOutputClosed) == 141);
  CHECK(status_of(Cause::kOutputFailed) == 125);
}

TEST_CASE("hosts that were not reached are listed in their order", "[unit]") {
  JobOutcome outcome = with_end(0);
  outcome.unreached = {{2, "s3: no route"}, {1, "s2: refused"}};
  CHECK(outcome.unreached_hosts() == std::vector<std::string>{"s2: refused", "s3: no route"});
  CHECK(outcome.host_of(0) == "s1");
}
