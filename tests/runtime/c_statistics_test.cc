#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

using namespace runjob::runtime;

namespace {

nlohmann::json statistics() {
  const char* text = runjob_statistics_json();
  require(text != nullptr, runjob_error_message());
  return nlohmann::json::parse(text);
}

void step() {
  check(small_allreduce("blocking"));
  std::vector<std::vector<float>> tensors(20, std::vector<float>(5000, 1));
  std::vector<runjob_handle> handles;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    handles.push_back(start_allreduce("t" + std::to_string(i), tensors[i], tensors[i], RUNJOB_FLOAT32));
  for (const runjob_handle handle : handles) check(finish(handle));
}

struct Steps {
  nlohmann::json before, after;

  std::uint64_t growth(const char* name) const {
    return after.at(name).get<std::uint64_t>() - before.at(name).get<std::uint64_t>();
  }
};

constexpr std::uint64_t kSteps = 30;

/// What `kSteps` steps send once all is known.
template <class Check>
void check_steps(const RankOptions& options, Check check_growth) {
  for (const Outcome& outcome : run_ranks(options, [&](int rank) {
         check(runjob_init());
         for (int i = 0; i < 3; ++i) step();
         Steps steps{statistics(), {}};
         for (std::uint64_t i = 0; i < kSteps; ++i) step();
         steps.after = statistics();
         check_growth(rank, steps);
         check(small_allreduce("nobody has left yet"));
         return outcome_of(runjob_shutdown());
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

}  // namespace

TEST_CASE("on one host a steady step sends nothing over any socket", "[runtime][multiproc]") {
  check_steps(on_one_host(GENERATE(2, 3)), [](int, const Steps& steps) {
    require(steps.growth("control_messages") == 0, steps.after.dump());
    require(steps.after.at("host_messages") == 0 && steps.after.at("host_bytes") == 0, steps.after.dump());
    require(steps.growth("rounds") > kSteps, steps.after.dump());
    require(steps.growth("rounds_with_data") > 0, steps.after.dump());
  });
}

TEST_CASE("a steady step of small tensors sends no message without their data", "[runtime][multiproc]") {
  const std::size_t count = GENERATE(1u, 40u);
  RankOptions options;
  options.hosts = GENERATE(std::vector<std::string>{"alpha", "alpha"}, std::vector<std::string>{"alpha", "beta"});
  for (const Outcome& outcome : run_ranks(options, [&](int) {
         check(runjob_init());
         const auto step = [&] {
           std::vector<std::vector<float>> tensors(count, std::vector<float>(5, 1));
           std::vector<runjob_handle> handles;
           for (std::size_t i = 0; i < count; ++i)
             handles.push_back(start_allreduce("t" + std::to_string(i), tensors[i], tensors[i], RUNJOB_FLOAT32));
           for (const runjob_handle handle : handles) check(finish(handle));
           for (const auto& tensor : tensors) require(tensor == std::vector<float>(5, 2), "a wrong sum");
           check(small_allreduce("loss"));
         };
         for (int i = 0; i < 6; ++i) step();
         const nlohmann::json before = statistics();
         for (std::uint64_t i = 0; i < kSteps; ++i) step();
         const Steps steps{before, statistics()};
         // A rank that the machine lets wait may depart from the plan now and then.
         const std::uint64_t rounds = steps.growth("rounds"), planned = steps.growth("planned_rounds");
         require(steps.growth("control_messages") == 0, steps.after.dump());
         require(rounds - steps.growth("rounds_with_data") < kSteps / 2, steps.after.dump());
         require(count == 1 || planned > kSteps / 2, steps.after.dump());
         check(small_allreduce("nobody has left yet"));
         return outcome_of(runjob_shutdown());
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("between hosts a steady step sends small messages between leaders only", "[runtime][multiproc]") {
  RankOptions options;
  options.hosts = {"alpha", "alpha", "beta", "gamma"};
  check_steps(options, [](int rank, const Steps& steps) {
    require(steps.growth("control_messages") == 0, steps.after.dump());
    const std::uint64_t rounds = steps.growth("rounds"), messages = steps.growth("host_messages");
    if (rank == 1) return require(steps.after.at("host_messages") == 0, steps.after.dump());
    // Two steps of a round, and at most two notices that it has begun; a round more may be on its way.
    require(messages >= 2 * (rounds - 1) && messages <= 4 * (rounds + 1), steps.after.dump());
    require(steps.growth("host_bytes") < 400 * (rounds + 1), steps.after.dump());
  });
}

TEST_CASE("ranks of one host that share no memory negotiate in rounds, as ranks between hosts do",
          "[runtime][multiproc]") {
  RankOptions options = on_one_host(2);
  options.environment["RUNJOB_SHARED_MEMORY"] = "0";
  check_steps(options, [](int, const Steps& steps) {
    require(steps.growth("control_messages") == 0, steps.after.dump());
    require(steps.growth("host_messages") > 0, steps.after.dump());
    require(steps.growth("rounds_with_data") > 0, steps.after.dump());
  });
}

TEST_CASE("there are no statistics without a job", "[runtime][multiproc]") {
  const Outcome outcome = run_alone([] {
    require(runjob_statistics_json() == nullptr, "no job");
    return outcome_of(RUNJOB_NOT_INITIALIZED);
  });
  CHECK(outcome.code == RUNJOB_NOT_INITIALIZED);
  CHECK_THAT(outcome.message, ContainsSubstring("init"));
}
