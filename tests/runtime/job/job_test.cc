#include "runtime/job/job.hpp"

#include <thread>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"

using namespace runjob::runtime;

TEST_CASE("without a rendezvous the job is this process alone", "[runtime][unit]") {
  InitCounts rounds;
  const Job job = join_job(read_runtime_config({}), rounds);
  CHECK(job.place.size == 1);
  CHECK(job.place.hosts == std::vector<int>{0});
  CHECK(rounds.empty());
  Submission barrier;
  barrier.name = "x";
  CHECK(job.engine->submit(barrier)->wait(std::nullopt)->ok());
}

TEST_CASE("a rank without a backend tells all the others why", "[runtime][net]") {
  // This program has no modules beside it, so both ranks are such when they need Gloo's.
  const runjob::rendezvous::LocalRendezvous rendezvous({"a", "b"});
  const auto join = [&](int rank) -> std::string {
    InitCounts rounds;
    RuntimeConfig config;
    config.rendezvous = rendezvous.address();
    config.rank = rank;
    config.interface = "lo";
    config.gloo = true;
    try {
      join_job(config, rounds);
    } catch (const runjob::Error& error) {
      return error.what();
    }
    return "";
  };
  std::string other;
  std::thread thread([&] { other = join(1); });
  const std::string own = join(0);
  thread.join();
  CHECK_THAT(own, ContainsSubstring("rank 0 on a cannot take part: no backend for 2 ranks"));
  CHECK(other == own);
}
