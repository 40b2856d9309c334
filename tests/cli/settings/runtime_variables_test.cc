#include "cli/settings/runtime_variables.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

std::map<std::string, std::string> read(const Settings& settings) {
  return read_runtime_variables(SettingReader(settings, "/"));
}

Settings given(const std::string& option, const std::string& value) {
  return {{option, {{value}, "command line"}}};
}

}  // namespace

TEST_CASE("options of the runtime become its variables, and those not given do not", "[cli][unit]") {
  using Variables = std::map<std::string, std::string>;
  CHECK(read({}).empty());
  CHECK(read(given("timeline-filename", "/tmp/t.json")) == Variables{{"TIMELINE", "/tmp/t.json"}});
  CHECK(read(given("timeline-mark-cycles", "true")) == Variables{{"TIMELINE_MARK_CYCLES", "1"}});
  CHECK(read(given("timeline-all-ranks", "true")) == Variables{{"TIMELINE_ALL_RANKS", "1"}});
  CHECK(read(given("timeline-max-mb", "64")) == Variables{{"TIMELINE_MAX_MB", "64"}});
  CHECK_THROWS_WITH(read(given("timeline-max-mb", "0")), ContainsSubstring("'0' is not a whole number from 1 to"));
  CHECK(read(given("no-stall-check", "1")) == Variables{{"STALL_CHECK_DISABLE", "1"}});
  CHECK(read(given("no-stall-check", "0")).empty());
  CHECK(read(given("stall-check-warning-time-seconds", "5")) == Variables{{"STALL_CHECK_TIME_SECONDS", "5"}});
  CHECK(read(given("stall-check-shutdown-time-seconds", "2m")) == Variables{{"STALL_SHUTDOWN_TIME_SECONDS", "2m"}});
  CHECK(read(given("gloo-timeout-seconds", "7")) == Variables{{"GLOO_TIMEOUT_SECONDS", "7"}});
  CHECK(read(given("fusion-threshold-mb", "32")) == Variables{{"FUSION_THRESHOLD", "33554432"}});
  CHECK(read(given("fusion-threshold-mb", "0")) == Variables{{"FUSION_THRESHOLD", "0"}});
  CHECK(read(given("cycle-time-ms", "3.5")) == Variables{{"CYCLE_TIME", "3.5"}});
  CHECK(read(given("log-hide-timestamp", "true")) == Variables{{"LOG_HIDE_TIME", "1"}});
  CHECK(read(given("log-hide-timestamp", "false")) == Variables{{"LOG_HIDE_TIME", "0"}});
  CHECK(read(given("cache-capacity", "0")) == Variables{{"CACHE_CAPACITY", "0"}});
}

TEST_CASE("the options of buckets and of autotuning become variables", "[cli][unit]") {
  using Variables = std::map<std::string, std::string>;
  CHECK(read(given("bucket-mb", "4")) == Variables{{"BUCKET_MB", "4"}});
  CHECK_THROWS_WITH(read(given("bucket-mb", "0")),
                    "command line: '0' is not a size above zero; --fusion-threshold-mb 0 reduces each gradient alone");
  CHECK(read(given("autotune", "false")) == Variables{{"AUTOTUNE", "0"}});
  Settings settings = given("autotune", "1");
  settings.merge(given("autotune-steps-per-sample", "0"));
  CHECK_THROWS_WITH(read(settings), ContainsSubstring("'0' is not a whole number from 1 to"));
  CHECK(read(given("autotune-steps-per-sample", "0")) == Variables{{"AUTOTUNE_STEPS_PER_SAMPLE", "0"}});
  CHECK_THROWS_WITH(read(given("autotune-warmup-samples", "1.5")), ContainsSubstring("'1.5' is not a whole number"));
  settings = given("autotune", "1");
  settings.merge(given("autotune-log-file", "/no/such/folder/log.csv"));
  CHECK_THROWS_WITH(read(settings), ContainsSubstring("/no/such/folder"));
  CHECK(read(given("autotune-log-file", "/no/such/folder/log.csv")).empty());
}

TEST_CASE("with --verbose the ranks name their backend, unless a log level is chosen", "[cli][unit]") {
  using Variables = std::map<std::string, std::string>;
  CHECK(read(given("verbose", "true")) == Variables{{"LOG_LEVEL", "INFO"}});
  Settings both = given("verbose", "true");
  both.merge(given("log-level", "ERROR"));
  CHECK(read(both) == Variables{{"LOG_LEVEL", "ERROR"}});
}

TEST_CASE("values of the runtime's options are checked before anything starts", "[cli][unit]") {
  for (const auto& [option, value] :
       {std::pair("cache-capacity", "-1"), std::pair("fusion-threshold-mb", "1.5"), std::pair("cycle-time-ms", "1ms"),
        std::pair("gloo-timeout-seconds", "0"), std::pair("stall-check-warning-time-seconds", "soon")}) {
    INFO(option);
    CHECK_THROWS_WITH(read(given(option, value)), ContainsSubstring(std::string("command line: '") + value));
  }
}

TEST_CASE("the options that only act in ranks that call init() are known by the places where they were given",
          "[cli][unit]") {
  Settings settings = {{"encrypt-data", {{"true"}, "--encrypt-data"}},
                       {"timeline-mark-cycles", {{"false"}, "--timeline-mark-cycles"}},
                       {"timeline-filename", {{"/t"}, "environment RUNJOB_TIMELINE"}},
                       {"fusion-threshold-mb", {{"1"}, "environment HOROVOD_FUSION_THRESHOLD_MB"}},
                       {"start-timeout", {{"9"}, "--start-timeout"}},
                       {"cycle-time-ms", {{"1"}, "file job.toml"}},
                       {"cache-capacity", {{"1024"}, "file job.toml"}},  // as --print-config writes it
                       {"hierarchical-allreduce", {{"true"}, "file job.toml"}},
                       {"timeout", {{"9"}, "--timeout"}},
                       {"tcp", {{"true"}, "--tcp"}}};
  CHECK(runtime_options(settings) == std::vector<std::string>{"file job.toml, cycle-time-ms", "--encrypt-data",
                                                              "--start-timeout", "RUNJOB_TIMELINE"});
  CHECK(runtime_options({}).empty());
}
