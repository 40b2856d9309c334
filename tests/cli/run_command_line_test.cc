#include "cli/run_command_line.hpp"

#include <optional>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

struct Run {
  int status = -1;
  std::string printed;
  std::string told;
  std::vector<std::string> warnings;
  std::optional<JobSpec> spec;
  std::vector<Host> cleaned;
};

Run run(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  Run result;
  const Effects effects = {[&](const std::string& text) { result.printed += text; },
                           [&](const std::string& text) { result.warnings.push_back(text); },
                           [&](const JobSpec& spec) {
                             result.spec = spec;
                             return 7;
                           },
                           [&](const JobSpec& spec) {
                             result.cleaned = spec.allocation.hosts;
                             return 8;
                           },

                           [&](const std::string& text) { result.told += text; }};
  result.status = run_command_line(arguments, {environment, "/", "node1"}, effects);
  return result;
}

}  // namespace

TEST_CASE("cleaning needs hosts and no command", "[unit]") {
  const Run result = run({"-H", "s1,s2", "--clean-cache"});
  CHECK(result.status == 8);
  CHECK(result.cleaned.size() == 2);
  CHECK_FALSE(result.spec);
}

TEST_CASE("a job's map is told before it starts, or printed instead with what would be run", "[unit]") {
  const std::string map =
      "2 ranks on 1 host, mapped by slot, bound to none:\n  localhost: ranks 0, 1 in 2 slots (this host)\n";
  const Run shown = run({"-np", "2", "--display-map", "true"});
  CHECK(shown.spec);
  CHECK(shown.told == map);
  const Run dry = run({"-np", "2", "--dry-run", "-x", "A=b c", "echo", "it's"});
  CHECK_FALSE(dry.spec);
  CHECK(dry.status == 0);
  CHECK(dry.printed == map + "each runs: echo 'it'\\''s'\nin: /\nwith: A='b c'\n");
  CHECK(run({"-np", "2", "true"}).told.empty());
}

TEST_CASE("a command becomes a job, whose status is returned", "[unit]") {
  const Run result = run({"-np", "2", "--", "ps", "-ef"});
  CHECK(result.status == 7);
  REQUIRE(result.spec);
  CHECK(result.spec->command == std::vector<std::string>{"ps", "-ef"});
  CHECK(result.spec->allocation.placements.size() == 2);
  CHECK(result.printed.empty());
}

TEST_CASE("actions print and start nothing, whatever command follows", "[unit]") {
  for (const char* action : {"--help", "-h", "--version", "-v", "--print-config"}) {
    INFO(action);
    const Run result = run({action, "true"});
    CHECK(result.status == 0);
    CHECK_FALSE(result.printed.empty());
    CHECK_FALSE(result.spec);
  }
}

TEST_CASE("option --print-config still refuses wrong values", "[unit]") {
  CHECK_THROWS_WITH(run({"--print-config", "-np", "0"}), "-np: '0' is not a whole number from 1 to 1000000");
}

TEST_CASE("no command is a mistake", "[unit]") {
  const std::string message = "there is no command to run; write it after the options: runjob -np 2 python train.py";
  CHECK_THROWS_WITH(run({}), message);
  CHECK_THROWS_WITH(run({"-np", "2"}), message);
  CHECK_THROWS_WITH(run({"-np", "2", "--"}), message);
  CHECK_THROWS_WITH(run({""}), "the command is an empty word; write a program: runjob -np 2 python train.py");
}

TEST_CASE("warnings are told and the job still runs", "[unit]") {
  const Run result = run({"-x", "MISSING", "true"}, {{"RUNJOB_NUM_PORC", "2"}});
  CHECK(result.status == 7);
  CHECK(result.warnings ==
        std::vector<std::string>{
            "unknown environment variable RUNJOB_NUM_PORC has no effect; did you mean RUNJOB_NUM_PROC?",
            "-x: MISSING is not set here, so the ranks do not get it"});
}

TEST_CASE("a command that looks like parts of --tag-output is run with a warning", "[unit]") {
  const std::string warning =
      "the command is 'time', because --tag-output takes its parts after '=': write --tag-output=time for the parts, "
      "or -- "
      "before the command";
  const Run result = run({"--tag-output", "time", "python", "a.py"});
  CHECK(result.spec->command == std::vector<std::string>{"time", "python", "a.py"});
  CHECK(result.warnings == std::vector<std::string>{warning});
  CHECK_THAT(run({"-tag-output", "time,host", "a.py"}).warnings.at(0), ContainsSubstring("-tag-output=time,host"));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--tag-output", "python"},
                                                                                     {"--tag-output", "--", "time"},
                                                                                     {"-np", "2", "time"},
                                                                                     {"--tag-output=rank", "time"}}) {
    INFO(words.back());
    CHECK(run(words).warnings.empty());
  }
}
