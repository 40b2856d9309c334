#include "runtime/job/job.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"

using namespace runjob::runtime;

namespace {

/// The error of a rank's init(). This program has no modules beside it, so a rank that needs Gloo's fails after all
/// ranks have met.
std::string failed_join(const runjob::rendezvous::LocalRendezvous& rendezvous, int rank,
                        std::optional<std::chrono::milliseconds> start_timeout = std::nullopt) {
  InitCounts rounds;
  RuntimeConfig config;
  config.rendezvous = rendezvous.address();
  config.rank = rank;
  config.interface = "lo";
  config.gloo = true;
  config.start_timeout = start_timeout;
  try {
    join_job(config, rounds);
  } catch (const runjob::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

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
  const runjob::rendezvous::LocalRendezvous rendezvous({"a", "b"});
  std::string other;
  std::thread thread([&] { other = failed_join(rendezvous, 1); });
  const std::string own = failed_join(rendezvous, 0);
  thread.join();
  CHECK_THAT(own, ContainsSubstring("rank 0 on a cannot take part: no backend for 2 ranks"));
  CHECK(other == own);
}

TEST_CASE("a second process of a rank learns that it is none", "[runtime][net]") {
  const runjob::rendezvous::LocalRendezvous rendezvous({"a", "b"});
  std::thread thread([&] { failed_join(rendezvous, 1); });
  failed_join(rendezvous, 0);
  thread.join();
  const std::string second = failed_join(rendezvous, 0, std::chrono::milliseconds(200));
  CHECK_THAT(second, ContainsSubstring("rank 1 on b has not reached gather 'runtime.init.0.0'"));
  CHECK_THAT(second, ContainsSubstring("a process that a rank starts is not a rank"));
}
