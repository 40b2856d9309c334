#include "cli/options/mpirun_options.hpp"

#include "base/error.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/horovodrun_options.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using Words = std::vector<std::string>;

namespace {

/// The one setting that `words` give, and its values.
std::pair<std::string, Words> setting_of(Words words) {
  words.emplace_back("train");
  const CommandLine line = parse_command_line(words);
  CHECK(line.command == Words{"train"});
  REQUIRE(line.settings.size() == 1);
  const auto& [name, setting] = *line.settings.begin();
  CHECK(setting.origin == words.front());
  return {name, setting.values};
}

Warnings warnings_of(const Words& words) {
  Warnings warnings;
  warn_of_horovodrun_options(parse_command_line(words).settings, warnings);
  return warnings;
}

}  // namespace

TEST_CASE("mpirun's and mpiexec's spellings have their meaning", "[unit]") {
  using Given = std::pair<std::string, Words>;
  const std::vector<std::pair<Words, Given>> table = {
      {{"-c", "2"}, {"num-proc", {"2"}}},
      {{"--np", "2"}, {"num-proc", {"2"}}},
      {{"-host", "a,b"}, {"hosts", {"a,b"}}},
      {{"--host", "a,b"}, {"hosts", {"a,b"}}},
      {{"-hosts", "a,b"}, {"hosts", {"a,b"}}},
      {{"-machinefile", "f"}, {"hostfile", {"f"}}},
      {{"--machinefile", "f"}, {"hostfile", {"f"}}},
      {{"-wdir", "/"}, {"wdir", {"/"}}},
      {{"--wd", "/"}, {"wdir", {"/"}}},
      {{"--timestamp-output"}, {"prefix-output-with-timestamp", {"true"}}},
      {{"-iface", "eth0"}, {"network-interfaces", {"eth0"}}},
      {{"-npernode", "2"}, {"map-by", {"ppr:2:node"}}},
      {{"--npernode", "2"}, {"map-by", {"ppr:2:node"}}},
      {{"-N", "2"}, {"map-by", {"ppr:2:node"}}},
      {{"-N2"}, {"map-by", {"ppr:2:node"}}},
      {{"-ppn", "2"}, {"map-by", {"ppr:2:node:OVERSUBSCRIBE"}}},
      {{"-perhost", "2"}, {"map-by", {"ppr:2:node:OVERSUBSCRIBE"}}},
      {{"-genv", "A", "b c=d"}, {"export", {"A=b c=d"}}},
      {{"-env", "A", ""}, {"export", {"A="}}},
      {{"-bind-to", "core:overload"}, {"bind-to", {"core:overload"}}},
      {{"-oversubscribe"}, {"oversubscribe", {"true"}}},
      {{"-rank-by", "slot"}, {"rank-by", {"slot"}}},
  };
  for (const auto& [words, given] : table) {
    INFO(words.front());
    if (words.front() == "-N2") {
      CHECK(parse_command_line(words).settings.at("map-by").values == given.second);
      continue;
    }
    CHECK(setting_of(words) == given);
    CHECK(warnings_of(words).empty());
  }
}

TEST_CASE("what asks for what is so anyway is accepted without a word", "[unit]") {
  for (const char* word : {"--allow-run-as-root", "-allow-run-as-root", "-nooversubscribe", "--nooversubscribe", "-q",
                           "--quiet", "-genvall", "-envall"}) {
    INFO(word);
    CHECK(warnings_of({word, "train"}).empty());
    CHECK(parse_command_line({word, "train"}).command == Words{"train"});
  }
}

TEST_CASE("an option of mpirun's that runjob does not have gets a line that says why", "[unit]") {
  CHECK(warnings_of({"--prefix", "/opt/mpi", "train"}) ==
        Warnings{"--prefix has no effect: runjob needs no MPI on the hosts; the ranks get PATH and LD_LIBRARY_PATH as "
                 "they are here"});
  CHECK(parse_command_line({"--prefix", "/opt/mpi", "train"}).command == Words{"train"});
  CHECK(warnings_of({"-report-bindings", "train"}) ==
        Warnings{"-report-bindings has no effect: --verbose prints the CPUs to which each rank is bound"});
}

TEST_CASE("a misspelt option of mpirun's names that option and is never another one", "[unit]") {
  for (const auto& [typed, meant] :
       std::vector<std::pair<std::string, std::string>>{{"-npernod", "-npernode"},
                                                        {"-pernode", "-npernode"},
                                                        {"-pnn", "-ppn"},
                                                        {"--alow-run-as-root", "--allow-run-as-root"},
                                                        {"-machine-file", "-machinefile"},
                                                        {"--report-binding", ""},
                                                        {"-gnv", "-genv"}}) {
    INFO(typed);
    if (meant.empty()) {
      CHECK(parse_command_line({typed}).has("report-bindings"));  // a beginning of it
    } else {
      CHECK_THROWS_WITH(parse_command_line({typed, "2"}), "unknown option " + typed + "; did you mean " + meant + "?");
    }
  }
}
