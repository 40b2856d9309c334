#include "cli/settings/print_config.hpp"

#include "cli/options/option_table.hpp"
#include "cli/settings/config_file.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("option --print-config shows each value and where it came from", "[unit]") {
  const std::string text = config_text({{"num-proc", {{"2"}, "-np"}},
                                        {"hosts", {{"localhost:4"}, "environment RUNJOB_HOSTS"}},
                                        {"export", {{"A=1", "B"}, "-x"}},
                                        {"config-file", {{"job.toml"}, "--config-file"}},
                                        {"verbose", {{"true"}, "file job.toml"}}});
  for (const char* line :
       {"num-proc = 2", "hosts = \"localhost:4\"", "export = [\"A=1\", \"B\"]", "# wdir: the current directory",
        "start-timeout = 30", "verbose = true", "# config-file = \"job.toml\""}) {
    INFO(line);
    CHECK_THAT(text, ContainsSubstring(std::string(line) + " "));
  }
  for (const char* origin : {"  # -np\n", "  # environment RUNJOB_HOSTS\n", "  # file job.toml\n", "  # default\n"})
    CHECK_THAT(text, ContainsSubstring(origin));
  CHECK(text.find("check-build") == std::string::npos);
}

TEST_CASE("flags are printed as true or false, and of two opposites the one that is on by default", "[unit]") {
  const std::string text = config_text({{"verbose", {{"1"}, "environment RUNJOB_VERBOSE"}},
                                        {"no-hierarchical-allreduce", {{"true"}, "--no-hierarchical-allreduce"}}});
  CHECK_THAT(text, ContainsSubstring("\nverbose = true "));
  CHECK_THAT(text, ContainsSubstring("\nhierarchical-allreduce = false "));
  CHECK_THAT(text, ContainsSubstring("  # --no-hierarchical-allreduce\n"));
  CHECK_THAT(text, ContainsSubstring("\nhierarchical-allgather = true "));
  CHECK_THAT(text, !ContainsSubstring("\nno-hierarchical"));
  CHECK_THAT(text, ContainsSubstring("\nno-stall-check = false "));
}

TEST_CASE("what --print-config prints is a config file with the same values", "[unit]") {
  const Settings given = {{"num-proc", {{"2"}, "-np"}},
                          {"hosts", {{"s[1-2,4]:2,b:1"}, "-H"}},
                          {"export", {{"A=1", "B"}, "-x"}},
                          {"wdir", {{"/a b"}, "--wdir"}},
                          {"prefix-output-with-timestamp", {{"true"}, "-prefix-timestamp"}}};
  Warnings warnings;
  const Settings read = config_file_settings(config_text(given), "j.toml", warnings);
  for (const auto& [name, setting] : given) {
    INFO(name);
    CHECK(read.at(name).values == setting.values);
  }
  for (const auto& [name, setting] : read) {
    INFO(name);
    if (!given.contains(name)) CHECK(setting.values.back() == find_option(name)->default_text);
  }
}
