#include "cli/config_file.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

Settings read(const std::string& text, const std::string& path) {
  Warnings warnings;
  Settings settings = config_file_settings(text, path, warnings);
  CHECK(warnings.empty());
  return settings;
}

}  // namespace

TEST_CASE("a config file's keys are the options' names, in every format", "[unit]") {
  const auto expected = [](const std::string& path) {
    return Settings{{"num-proc", {{"2"}, "file " + path}},
                    {"hosts", {{"a:1,b:1"}, "file " + path}},
                    {"timeline-filename", {{"/t"}, "file " + path}}};
  };
  CHECK(read("num-proc = 2\nhosts = \"a:1,b:1\"\ntimeline-filename = \"/t\"\n", "j.toml") == expected("j.toml"));
  CHECK(read("num_proc = 2\nhosts = [\"a:1\", \"b:1\"]\n[timeline]\nfilename = \"/t\"\n", "j.toml") ==
        expected("j.toml"));
  CHECK(read("num_proc=2\nhosts=a:1,b:1\ntimeline_filename=/t\n", "j.ini") == expected("j.ini"));
  CHECK(read("num-proc: 2\nhosts: [a:1, b:1]\ntimeline:\n  filename: /t\n", "j.yml") == expected("j.yml"));
}

TEST_CASE("horovodrun's keys that have no effect are warnings that say why", "[unit]") {
  Warnings warnings;
  const Settings settings = config_file_settings(
      "params:\n  torus_allreduce: 1\n  cycle_time_ms: 3\nautotune:\n  enabled: 1\ntimeline:\n  filename: /t\n",
      "j.yaml", warnings);
  CHECK(settings ==
        Settings{{"cycle-time-ms", {{"3"}, "file j.yaml"}}, {"timeline-filename", {{"/t"}, "file j.yaml"}}});
  CHECK(warnings == Warnings{"file j.yaml: params.torus_allreduce has no effect: hosts are joined in one way, see "
                             "--hierarchical-allreduce",
                             "file j.yaml: autotune.enabled has no effect: there is no autotuning in this version"});
}

TEST_CASE("every key of horovodrun's file that has no effect has a reason", "[unit]") {
  const std::string key =
      GENERATE(as<std::string>{}, "controller", "params.torus_allreduce", "autotune.enabled", "autotune.log_file",
               "autotune.warmup_samples", "autotune.steps_per_sample", "autotune.bayes_opt_max_samples",
               "autotune.gaussian_process_noise", "library_options.mpi_threads_disable",
               "library_options.num_nccl_streams", "library_options.thread_affinity", "library_options.mpi_args",
               "logging.with_timestamp", "logging.hide_timestamp");
  Warnings warnings;
  CHECK(config_file_settings("\"" + key + "\": 1\n", "j.yaml", warnings).empty());
  REQUIRE(warnings.size() == 1);
  const std::string text = "file j.yaml: " + key + " has no effect: ";
  CHECK(warnings.front().substr(0, text.size()) == text);
  CHECK(warnings.front().size() > text.size());
}

TEST_CASE("a key that is none is an error that names the nearest", "[unit]") {
  Warnings warnings;
  const std::vector<std::pair<std::string, std::string>> table = {
      {"num-prok = 2\n", "file j: unknown key 'num-prok'; did you mean 'num-proc'?"},
      {"[params]\nfusion_treshold_mb = 2\n",
       "file j: unknown key 'params.fusion_treshold_mb'; did you mean 'params.fusion_threshold_mb'?"},
      {"frobnicate-the-job = 1\n",
       "file j: unknown key 'frobnicate-the-job'; keys are the long names of options, as in num-proc"},
      {"help = true\n", "file j: unknown key 'help'; keys are the long names of options, as in num-proc"},
      {"num-proc = 2\nwdir = /a\nnum_proc = 3\n", "file j: num-proc is given twice; keep one"},
      {"wdir = [\"/a\", \"/b\"]\n", "file j: wdir takes one value, found 2; put a text with blanks in quotes"},
  };
  for (const auto& [text, message] : table) {
    INFO(text);
    CHECK_THROWS_WITH(config_file_settings(text, "j", warnings), message);
  }
}

TEST_CASE("horovodrun's switches for the stall check and the log do what they say", "[unit]") {
  CHECK(read("stall_check:\n  enabled: false\n", "j.yaml").at("no-stall-check").values.back() == "true");
  CHECK(read("stall_check:\n  enabled: true\n", "j.yaml").at("no-stall-check").values.back() == "false");
  CHECK(read("logging:\n  level: DEBUG\n", "j.yaml").at("log-level").values.back() == "DEBUG");
  CHECK_THROWS_WITH(read("stall_check:\n  enabled: maybe\n", "j.yaml"), ContainsSubstring("stall_check.enabled"));
}
