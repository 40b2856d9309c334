#include "runtime/job/runtime_config.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Environment;

namespace {

std::string refusal(const Environment& environment) {
  try {
    read_runtime_config(environment);
  } catch (const runjob::Error& error) {
    CHECK(error.code() == runjob::Errc::kUsage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an empty environment is a job of one process with the defaults", "[runtime][unit]") {
  const RuntimeConfig config = read_runtime_config({});
  CHECK_FALSE(config.rendezvous);
  CHECK(config.gloo_timeout == std::chrono::seconds(30));
  CHECK_FALSE(config.start_timeout);
  CHECK_FALSE(config.timeline);
  CHECK(config.shared_memory);
  CHECK(config.cma);
  CHECK_FALSE(config.dynamic_process_sets);
  CHECK(config.warnings.empty());
}

TEST_CASE("without a launcher of runjob's, rank 0 warns of Horovod's variables that change nothing",
          "[runtime][unit]") {
  const Environment ignored = {{"HOROVOD_TORUS_ALLREDUCE", "1"}, {"HOROVOD_CONTROLLER", "mpi"}};
  const auto warnings = [&](Environment more) {
    more.insert(ignored.begin(), ignored.end());
    return read_runtime_config(more).warnings;
  };
  const std::vector<std::string> expected = {
      "HOROVOD_CONTROLLER, HOROVOD_TORUS_ALLREDUCE have no effect with runjob; docs/environment.md gives the reasons"};
  CHECK(warnings({}) == expected);
  const Environment mpirun = {{"PMIX_NAMESPACE", "j"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  const auto of_rank = [&](const char* rank) {
    Environment environment = mpirun;
    environment["PMIX_RANK"] = environment["OMPI_COMM_WORLD_RANK"] = rank;
    return warnings(environment);
  };
  CHECK(of_rank("0") == expected);
  CHECK(of_rank("1").empty());
  CHECK(warnings({{"RUNJOB_RENDEZVOUS", "unix:/x"}, {"RUNJOB_RANK", "0"}}).empty());
}

TEST_CASE("every variable is read under both names, ours first", "[runtime][unit]") {
  const RuntimeConfig config = read_runtime_config({{"RUNJOB_RENDEZVOUS", "unix:/x"},
                                                    {"RUNJOB_JOB_KEY_FILE", "/k"},
                                                    {"HOROVOD_RANK", "3"},
                                                    {"HOROVOD_GLOO_TIMEOUT_SECONDS", "5"},
                                                    {"RUNJOB_GLOO_TIMEOUT_SECONDS", "7"},
                                                    {"RUNJOB_START_TIMEOUT", "500ms"},
                                                    {"HOROVOD_GLOO_IFACE", "eth1"},
                                                    {"RUNJOB_ADDRESS", "10.0.0.5"},
                                                    {"HOROVOD_TIMELINE", "/tmp/t.json"},
                                                    {"HOROVOD_TIMELINE_MARK_CYCLES", "1"},
                                                    {"HOROVOD_SHARED_MEMORY", "off"},
                                                    {"RUNJOB_CMA", "0"},
                                                    {"HOROVOD_DYNAMIC_PROCESS_SETS", "1"},
                                                    {"HOROVOD_LOG_HIDE_TIME", "1"},
                                                    {"RUNJOB_LOG_LEVEL", "debug"}});
  CHECK(config.rendezvous == "unix:/x");
  CHECK(config.job_key_file == "/k");
  CHECK(config.rank == 3);
  CHECK(config.gloo_timeout == std::chrono::seconds(7));
  CHECK(config.start_timeout == std::chrono::milliseconds(500));
  CHECK(config.interface == "eth1");
  CHECK(config.address == "10.0.0.5");
  CHECK(config.timeline == "/tmp/t.json");
  CHECK(config.timeline_mark_cycles);
  CHECK_FALSE(config.shared_memory);
  CHECK_FALSE(config.cma);
  CHECK(config.dynamic_process_sets);
  CHECK(config.log_level == runjob::log::Level::kDebug);
  CHECK(config.log_hides_time);
}

TEST_CASE("a start timeout of 0 means the job's own", "[runtime][unit]") {
  CHECK_FALSE(read_runtime_config({{"HOROVOD_START_TIMEOUT", "0"}}).start_timeout);
}

TEST_CASE("the limits of stalls are read, and the check can be off", "[runtime][unit]") {
  const auto limits = [](const Environment& environment) { return read_runtime_config(environment).stall_limits; };
  CHECK(limits({}).warning == std::chrono::seconds(60));
  CHECK(limits({}).failure.count() == 0);
  CHECK(limits({{"HOROVOD_STALL_CHECK_TIME_SECONDS", "5"}}).warning == std::chrono::seconds(5));
  CHECK(limits({{"RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "90"}}).failure == std::chrono::seconds(90));
  const StallLimits off = limits({{"RUNJOB_STALL_SHUTDOWN_TIME_SECONDS", "9"}, {"HOROVOD_STALL_CHECK_DISABLE", "1"}});
  CHECK(off.warning.count() == 0);
  CHECK(off.failure.count() == 0);
}

TEST_CASE("the capacity of the response cache is a number", "[runtime][unit]") {
  CHECK(read_runtime_config({}).cache_capacity == 1024);
  CHECK(read_runtime_config({{"HOROVOD_CACHE_CAPACITY", "0"}}).cache_capacity == 0);
  CHECK_THAT(refusal({{"RUNJOB_CACHE_CAPACITY", "-1"}}), ContainsSubstring("RUNJOB_CACHE_CAPACITY"));
}

TEST_CASE("the settings of fusion are bytes, milliseconds and a switch", "[runtime][unit]") {
  const RuntimeConfig standard = read_runtime_config({});
  CHECK(standard.fusion.threshold_bytes == 128u << 20);
  CHECK(standard.fusion.mixes_groups);
  CHECK(standard.cycle_time.count() == 0);
  const RuntimeConfig given = read_runtime_config(
      {{"HOROVOD_FUSION_THRESHOLD", "1048576"}, {"HOROVOD_CYCLE_TIME", "0.5"}, {"HOROVOD_DISABLE_GROUP_FUSION", "1"}});
  CHECK(given.fusion.threshold_bytes == 1u << 20);
  CHECK_FALSE(given.fusion.mixes_groups);
  CHECK(given.cycle_time == std::chrono::microseconds(500));
  CHECK(read_runtime_config({{"RUNJOB_FUSION_THRESHOLD", "64MB"}}).fusion.threshold_bytes == 64u << 20);
  CHECK_THAT(refusal({{"RUNJOB_FUSION_THRESHOLD", "-1"}}), ContainsSubstring("RUNJOB_FUSION_THRESHOLD: '-1'"));
  CHECK_THAT(refusal({{"HOROVOD_CYCLE_TIME", "1s"}}), ContainsSubstring("HOROVOD_CYCLE_TIME: '1s'"));
}

TEST_CASE("the size of buckets is in MiB, and the threshold of fusion limits it", "[runtime][unit]") {
  const auto bytes = [](const Environment& environment) { return read_runtime_config(environment).bucket_bytes(); };
  CHECK(bytes({}) == 16u << 20);
  CHECK(bytes({{"RUNJOB_BUCKET_MB", "4"}}) == 4u << 20);
  CHECK(bytes({{"RUNJOB_BUCKET_MB", "4"}, {"HOROVOD_FUSION_THRESHOLD", "1000"}}) == 1000);
  CHECK(bytes({{"RUNJOB_FUSION_THRESHOLD", "0"}}) == 0);
  CHECK(refusal({{"RUNJOB_BUCKET_MB", "0"}}) ==
        "RUNJOB_BUCKET_MB: '0' is not a size above zero; RUNJOB_FUSION_THRESHOLD=0 reduces each gradient alone");
  CHECK_THAT(refusal({{"RUNJOB_BUCKET_MB", "4MB"}}), ContainsSubstring("RUNJOB_BUCKET_MB: '4MB' is not"));
}

TEST_CASE("the settings of autotuning are Horovod's, and count where it is on", "[runtime][unit]") {
  const Environment given = {{"HOROVOD_AUTOTUNE_LOG", "/l.csv"},
                             {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "0"},
                             {"RUNJOB_AUTOTUNE_STEPS_PER_SAMPLE", "2"},
                             {"HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "9"}};
  CHECK_FALSE(read_runtime_config(given).autotune.is_on);
  const auto with = [&](const char* name, const char* value) {
    Environment environment = given;
    environment["HOROVOD_AUTOTUNE"] = "1";
    environment[name] = value;
    return environment;
  };
  const AutotuneSettings settings = read_runtime_config(with("X", "")).autotune;
  CHECK(settings.is_on);
  CHECK(settings.log == "/l.csv");
  CHECK(settings.warmup_samples == 0);
  CHECK(settings.steps_per_sample == 2);
  CHECK(settings.most_samples == 9);
  CHECK_THAT(refusal(with("RUNJOB_AUTOTUNE_STEPS_PER_SAMPLE", "0")),
             ContainsSubstring("RUNJOB_AUTOTUNE_STEPS_PER_SAMPLE: '0' is not a whole number from 1"));
  CHECK(refusal({{"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "0"}}).empty());
}

TEST_CASE("empty values count as not set, and DYNAMIC opens no file", "[runtime][unit]") {
  CHECK_FALSE(read_runtime_config({{"RUNJOB_RENDEZVOUS", ""}, {"RUNJOB_TIMELINE", ""}}).timeline);
  CHECK_FALSE(read_runtime_config({{"HOROVOD_TIMELINE", "DYNAMIC"}}).timeline);
}

TEST_CASE("a wrong value is refused, naming the variable as it was set and the value", "[runtime][unit]") {
  CHECK_THAT(refusal({{"RUNJOB_RENDEZVOUS", "unix:/x"}, {"RUNJOB_RANK", "two"}}),
             ContainsSubstring("RUNJOB_RANK: 'two' is not a whole number"));
  CHECK_THAT(refusal({{"RUNJOB_RENDEZVOUS", "unix:/x"}}), ContainsSubstring("RUNJOB_RANK is not"));
  CHECK_THAT(refusal({{"HOROVOD_GLOO_TIMEOUT_SECONDS", "30x"}}),
             ContainsSubstring("HOROVOD_GLOO_TIMEOUT_SECONDS: '30x' is not a time"));
  CHECK_THAT(refusal({{"RUNJOB_GLOO_TIMEOUT_SECONDS", "0"}}), ContainsSubstring("not a time above zero"));
  CHECK_THAT(refusal({{"RUNJOB_TIMELINE_MARK_CYCLES", "maybe"}}), ContainsSubstring("'maybe'"));
  CHECK_THAT(refusal({{"RUNJOB_LOG_LEVEL", "loud"}}), ContainsSubstring("RUNJOB_LOG_LEVEL: 'loud'"));
}

TEST_CASE("what looks like a mistake is remarked, and nothing else", "[runtime][unit]") {
  const auto misspelt = read_runtime_config({{"RUNJOB_TIMELIN", "x"}, {"RUNJOB_JOB_ID", "7"}, {"HOROVOD_X", "1"}});
  REQUIRE(misspelt.warnings.size() == 1);
  CHECK(misspelt.warnings[0] == "RUNJOB_TIMELIN is not a variable of runjob; is RUNJOB_TIMELINE meant?");
  const auto alone = read_runtime_config({{"HOROVOD_SIZE", "4"}});
  REQUIRE(alone.warnings.size() == 1);
  CHECK_THAT(alone.warnings[0], ContainsSubstring("HOROVOD_SIZE is 4, but RUNJOB_RENDEZVOUS is not set"));
}
