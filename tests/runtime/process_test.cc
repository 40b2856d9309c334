#include "runtime/process.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

using namespace runjob::runtime;

TEST_CASE("a process is a member between init and shutdown, and its handles outlive that", "[runtime][multiproc]") {
  const Outcome outcome = run_alone([] {
    Process& process = Process::current();
    require(&process == &Process::current(), "one per process");
    require(!process.job(), "member before init");
    try {
      process.member_job();
      require(false, "an engine before init");
    } catch (const runjob::Error& error) {
      require(error.code() == runjob::Errc::kNotInitialized, error.what());
    }
    process.init({});
    const auto job = process.job();
    require(job && job->place.size == 1, "member");
    process.init({});
    require(process.job() == job, "a second init does nothing");
    Submission barrier;
    barrier.name = "x";
    const auto handle = process.handles().add(job->engine->submit(barrier));
    process.shutdown();
    require(!process.job(), "member after shutdown");
    require(process.handles().find(handle)->done(), "handle");
    return Outcome();
  });
  INFO(outcome.message);
  CHECK(outcome.ok());
}

TEST_CASE("a failed init leaves the process as it was", "[runtime][multiproc]") {
  const Outcome outcome = run_alone([] {
    Process& process = Process::current();
    try {
      process.init({{"RUNJOB_LOG_LEVEL", "loud"}});
    } catch (const runjob::Error& error) {
      require(!process.job(), "member");
      process.init({});
      return Outcome{RUNJOB_OK, error.what(), 0};
    }
    return Outcome{RUNJOB_INTERNAL, "no error", 0};
  });
  CHECK(outcome.ok());
  CHECK_THAT(outcome.message, ContainsSubstring("RUNJOB_LOG_LEVEL: 'loud'"));
}
