#include "cli/options/command_line.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using Words = std::vector<std::string>;

TEST_CASE("a command line becomes settings that know how they were typed", "[unit]") {
  const CommandLine line = parse_command_line({"-np", "2", "-H", "localhost:4", "--verbose", "python", "a.py"});
  CHECK(line.command == Words{"python", "a.py"});
  CHECK(line.settings == Settings{{"num-proc", {{"2"}, "-np"}},
                                  {"hosts", {{"localhost:4"}, "-H"}},
                                  {"verbose", {{"true"}, "--verbose"}}});
  CHECK(line.has("hosts"));
  CHECK_FALSE(line.has("hostfile"));
}

TEST_CASE("an option given twice has its last value, -x has all", "[unit]") {
  const CommandLine line = parse_command_line({"-np", "2", "--num-proc=3", "-x", "A=1", "-x", "B", "-x", "C=[a,b]"});
  CHECK(line.settings.at("num-proc") == Setting{{"3"}, "--num-proc"});
  CHECK(line.settings.at("export") == Setting{{"A=1", "B", "C=[a,b]"}, "-x"});
  CHECK(parse_command_line({"--verbose", "--verbose=false"}).settings.at("verbose").values == Words{"false"});
}

TEST_CASE("values reach their option whatever they look like", "[unit]") {
  for (const char* value : {"", "-np", "--help", "[::1]", "[a,b]", "{}", "a b", "%%", "\"q\"", "a,b", "--", "#"}) {
    INFO(value);
    CHECK(parse_command_line({"-H", value, "true"}).settings.at("hosts").values == Words{value});
    CHECK(parse_command_line({"-x", value, "true"}).settings.at("export").values == Words{value});
  }
}
