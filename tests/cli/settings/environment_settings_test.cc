#include "cli/settings/environment_settings.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("RUNJOB_ variables give options", "[unit]") {
  Warnings warnings;
  const Settings settings = environment_settings({{"RUNJOB_NUM_PROC", "2"},
                                                  {"RUNJOB_HOSTS", "a:2"},
                                                  {"RUNJOB_START_TIMEOUT", "5"},
                                                  {"HOROVOD_START_TIMEOUT", "6"},
                                                  {"HOROVOD_TIMELINE", "/t.json"},
                                                  {"RUNJOB_WDIR", ""},
                                                  {"PATH", "/bin"}},
                                                 warnings);
  CHECK(settings == Settings{{"num-proc", {{"2"}, "environment RUNJOB_NUM_PROC"}},
                             {"hosts", {{"a:2"}, "environment RUNJOB_HOSTS"}},
                             {"start-timeout", {{"5"}, "environment RUNJOB_START_TIMEOUT"}},
                             {"timeline-filename", {{"/t.json"}, "environment HOROVOD_TIMELINE"}}});
  CHECK(warnings.empty());
}

TEST_CASE("Horovod's ways to say unset are unset", "[unit]") {
  Warnings warnings;
  CHECK(environment_settings({{"HOROVOD_START_TIMEOUT", "0"}, {"HOROVOD_TIMELINE", "DYNAMIC"}}, warnings).empty());
}

TEST_CASE("inside a job, a rank's variables are not settings", "[unit]") {
  Warnings warnings;
  CHECK(environment_settings({{"RUNJOB_RANK", "1"},
                              {"RUNJOB_SIZE", "2"},
                              {"RUNJOB_LOCAL_RANK", "1"},
                              {"RUNJOB_CROSS_SIZE", "1"},
                              {"RUNJOB_HOSTNAME", "h"},
                              {"RUNJOB_JOB_ID", "j"},
                              {"RUNJOB_RENDEZVOUS", "unix:/x"},
                              {"RUNJOB_NETWORK_VARIABLES", "GLOO_SOCKET_IFNAME"},
                              {"RUNJOB_GENERATION", "0"},
                              {"RUNJOB_TIMELINE", "/outer.json"},
                              {"RUNJOB_COMMIT_DIR", "/commits"},
                              {"HOROVOD_RANK", "1"}},
                             warnings)
            .empty());
  CHECK(warnings.empty());
}

TEST_CASE("an unknown RUNJOB_ variable is a warning that names the nearest", "[unit]") {
  Warnings warnings;
  CHECK(environment_settings({{"RUNJOB_NUM_PROCS", "2"},
                              {"RUNJOB_COLOUR_OF_THE_SKY", "b"},
                              {"RUNJOB_TENSORFLOW_SYNCHRONOUS", "1"},
                              {"RUNJOB_NCCL_LIBRARY", "/opt/libnccl.so.2"},
                              {"HOROVOD_X", ""}},
                             warnings)
            .empty());
  CHECK(warnings ==
        Warnings{"unknown environment variable RUNJOB_COLOUR_OF_THE_SKY has no effect",
                 "unknown environment variable RUNJOB_NUM_PROCS has no effect; did you mean RUNJOB_NUM_PROC?"});
}
