#include "runtime/job/autotune_report.hpp"

#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_directory.hpp"

using namespace runjob::runtime;

namespace {

constexpr const char* kHeader =
    "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,tensor_fusion_threshold,"
    "score,bucket_mb,step_ms\n";

RuntimeConfig config_with(const std::string& log, runjob::Environment environment = {}) {
  environment["RUNJOB_AUTOTUNE"] = "1";
  environment["RUNJOB_AUTOTUNE_LOG"] = log;
  return read_runtime_config(environment);
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the log has a line for each sample, with the values in force, and a new job empties it", "[runtime][unit]") {
  const runjob::TemporaryDirectory folder;
  const std::string log = folder.path() + "/log.csv";
  const RuntimeConfig config = config_with(log, {{"RUNJOB_CYCLE_TIME", "0.5"}, {"RUNJOB_CACHE_CAPACITY", "0"}});
  {
    AutotuneReport report(config, 2, /*has_hosts=*/true, /*continues=*/false);
    CHECK(text_of(log) == kHeader);
    report.add_sample(4u << 20, 12.5, 25'000'000);
    CHECK(text_of(log) == std::string(kHeader) + "1,1,0,0,0.5,128,2000,4,12.5\n");  // at once
  }
  AutotuneReport report(config_with(log), 2, /*has_hosts=*/false, /*continues=*/false);
  report.add_sample(16u << 20, 1, 1000);
  CHECK(text_of(log) == std::string(kHeader) + "0,0,0,1,0,128,1,16,1\n");
}

TEST_CASE("a later generation continues the log, with no second header", "[runtime][unit]") {
  const runjob::TemporaryDirectory folder;
  const std::string log = folder.path() + "/log.csv";
  for (const bool continues : {false, true, true})
    AutotuneReport(config_with(log), 2, false, continues).add_sample(1u << 20, 1, 1000);
  const std::string line = "0,0,0,1,0,128,1,1,1\n";
  CHECK(text_of(log) == kHeader + line + line + line);
}

TEST_CASE("a log that cannot be written is an error with its name and the reason", "[runtime][unit]") {
  CHECK_THROWS_WITH(AutotuneReport(config_with("/no/such/folder/log.csv"), 2, false, false),
                    "RUNJOB_AUTOTUNE_LOG: cannot create '/no/such/folder/log.csv': No such file or directory");
  CHECK_THROWS_WITH(AutotuneReport(config_with("/dev/full"), 2, false, false),
                    "writing '/dev/full': No space left on device");
}

TEST_CASE("there is nothing to search for when the user has set the size, or no other rank is there",
          "[runtime][unit]") {
  CHECK(AutotuneReport(config_with(""), 2, false, false).is_needed());
  CHECK_FALSE(AutotuneReport(config_with(""), 1, false, false).is_needed());
  CHECK_FALSE(AutotuneReport(config_with("", {{"RUNJOB_BUCKET_MB", "4"}}), 2, false, false).is_needed());
}
