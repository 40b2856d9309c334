#include "cli/settings/config_file.hpp"

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

TEST_CASE("every key of horovodrun's files is the value of an option", "[unit]") {
  const std::string text =
      "controller: mpi\n"
      "params:\n  torus_allreduce: 1\n  cycle_time_ms: 3\n"
      "autotune:\n  enabled: 1\n  log_file: f\n  warmup_samples: 5\n  steps_per_sample: 1\n"
      "  bayes_opt_max_samples: 1\n  gaussian_process_noise: 0.5\n"
      "library_options:\n  mpi_threads_disable: 1\n  num_nccl_streams: 2\n  thread_affinity: 1\n  mpi_args: -x\n"
      "logging:\n  level: INFO\n  hide_timestamp: true\n";
  const Settings settings = read(text, "j.yaml");
  CHECK(settings.size() == 15);
  for (const auto& [name, value] : std::map<std::string, std::string>{{"mpi", "true"},
                                                                      {"torus-allreduce", "1"},
                                                                      {"autotune", "1"},
                                                                      {"autotune-log-file", "f"},
                                                                      {"mpi-threads-disable", "1"},
                                                                      {"num-nccl-streams", "2"},
                                                                      {"mpi-args", "-x"},
                                                                      {"log-hide-timestamp", "true"}}) {
    INFO(name);
    CHECK(settings.at(name) == Setting{{value}, "file j.yaml"});
  }
  CHECK(read("logging:\n  with_timestamp: true\n", "j.yaml").at("log-hide-timestamp").values.back() == "false");
  CHECK(read("controller: gloo\n", "j.yaml").contains("gloo"));
  CHECK_THROWS_WITH(read("controller: foo\n", "j.yaml"), "file j.yaml, controller: 'foo' is not gloo or mpi");
}

TEST_CASE("in a YAML file, unknown keys and keys without a value are warnings with their line", "[unit]") {
  Warnings warnings;
  const Settings settings = config_file_settings(
      "params:\n  fusion_treshold_mb: 2\n  cycle_time_ms: 3\ntimeline:\n  filename:\n\nwdir: /\n", "j.yaml", warnings);
  CHECK(settings == Settings{{"cycle-time-ms", {{"3"}, "file j.yaml"}}, {"wdir", {{"/"}, "file j.yaml"}}});
  CHECK(warnings == Warnings{"file j.yaml: line 2: unknown key 'params.fusion_treshold_mb' is ignored; did you mean "
                             "'params.fusion_threshold_mb'?",
                             "file j.yaml: line 5: timeline.filename has no value and is ignored"});
}

TEST_CASE("in other files a key that is none is an error that names the nearest", "[unit]") {
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
