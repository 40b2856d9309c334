#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/member_ranks.hpp"
#include "tests/runtime/rank_processes.hpp"

using namespace runjob::runtime;

namespace {

nlohmann::json settings() {
  const char* text = runjob_bucket_settings_json();
  require(text != nullptr, runjob_error_message());
  return nlohmann::json::parse(text);
}

}  // namespace

TEST_CASE("the size of buckets is rank 0's on all ranks, and rank 0 alone has the limits of the search",
          "[runtime][multiproc]") {
  RankOptions options = on_one_host(2);
  options.environment["RUNJOB_AUTOTUNE"] = "1";
  check_all_ok(run_ranks(options, [](int rank) {
    ::setenv("RUNJOB_FUSION_THRESHOLD", rank == 0 ? "2MB" : "64MB", 1);
    check(runjob_init());
    const nlohmann::json found = settings();
    require(found.at("bucket_bytes") == 2u << 20, found.dump());
    const nlohmann::json limits = {
        {"warmup_samples", 3}, {"steps_per_sample", 10}, {"most_samples", 20}, {"most_bucket_bytes", 2u << 20}};
    require(found.at("autotune") == (rank == 0 ? limits : nlohmann::json()), found.dump());
    check(runjob_autotune_sample(1 << 20, 1, 1000));  // there is no log
    check(runjob_autotune_remark(nullptr));
    require(runjob_autotune_sample(1 << 20, 0, 1000) == RUNJOB_INVALID_ARGUMENT, "no time");
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("there is no size of buckets without a job", "[runtime][multiproc]") {
  const Outcome outcome = run_alone([] {
    require(runjob_bucket_settings_json() == nullptr, "no job");
    return outcome_of(runjob_autotune_remark("nothing"));
  });
  CHECK(outcome.code == RUNJOB_NOT_INITIALIZED);
}
