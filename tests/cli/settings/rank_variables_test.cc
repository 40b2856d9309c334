#include "cli/settings/rank_variables.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a wrong value of a variable that the ranks would read is an error of the launcher", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"HOROVOD_FUSION_THRESHOLD", "32e6"},
      {"HOROVOD_DISABLE_GROUP_FUSION", "maybe"},
      {"HOROVOD_DYNAMIC_PROCESS_SETS", "-1"},
      {"RUNJOB_SHARED_MEMORY", "shm"},
      {"RUNJOB_CMA", "x"},
      {"HOROVOD_CYCLE_TIME", "1ms"},
      {"HOROVOD_CACHE_CAPACITY", "-1"},
      {"RUNJOB_BUCKET_MB", "0"},
      {"HOROVOD_AUTOTUNE", "perhaps"},
      {"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "x"},
      {"HOROVOD_NUM_NCCL_STREAMS", "-1"},
      {"HOROVOD_STALL_CHECK_TIME_SECONDS", "soon"},
      {"HOROVOD_GLOO_TIMEOUT_SECONDS", "0"},
      {"RUNJOB_TIMELINE_MAX_MB", "0"},
      {"HOROVOD_LOG_LEVEL", "4"},
      {"HOROVOD_CONTROLLER", "jsrun"},
      {"HOROVOD_CPU_OPERATIONS", "nccl"},
  };
  for (const auto& [name, value] : table) {
    INFO(name);
    CHECK_THROWS_WITH(check_rank_variables({{name, value}}, {}, {}),
                      Catch::Matchers::StartsWith("environment " + name + ": '" + value + "' is not "));
    CHECK_THROWS_WITH(check_rank_variables({}, {{"-x", {{name, value}}}}, {}),
                      Catch::Matchers::StartsWith("-x " + name + ": '" + value + "' is not "));
  }
}

TEST_CASE("only a value that a rank would read is checked", "[unit]") {
  CHECK_NOTHROW(check_rank_variables({{"HOROVOD_FUSION_THRESHOLD", "64MB"},
                                      {"HOROVOD_DISABLE_GROUP_FUSION", "2"},
                                      {"HOROVOD_CONTROLLER", "MPI"},
                                      {"HOROVOD_CPU_OPERATIONS", "ccl"},
                                      {"HOROVOD_CYCLE_TIME", ""}},
                                     {}, {}));
  CHECK_NOTHROW(check_rank_variables({{"RUNJOB_CMA", "1"}, {"HOROVOD_CMA", "x"}}, {}, {}));
  CHECK_NOTHROW(check_rank_variables({{"HOROVOD_CMA", "x"}}, {{"-x", {{"HOROVOD_CMA", "1"}}}}, {}));
  const ExportedVariables right{"-x", {{"HOROVOD_CMA", "1"}}};
  const ExportedVariables wrong{"f.env", {{"HOROVOD_CMA", "x"}}};
  CHECK_NOTHROW(check_rank_variables({}, {right, wrong}, {}));
  CHECK_THROWS_WITH(check_rank_variables({}, {wrong, right}, {{"CMA", "1"}}),
                    ContainsSubstring("f.env HOROVOD_CMA: 'x'"));
  CHECK_NOTHROW(check_rank_variables({{"HOROVOD_LOG_LEVEL", "4"}}, {}, {{"LOG_LEVEL", "INFO"}}));
}
