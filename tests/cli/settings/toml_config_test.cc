#include "cli/settings/toml_config.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using Entries = std::vector<ConfigEntry>;

TEST_CASE("TOML keys come with their sections, values without quotes", "[unit]") {
  const std::string text =
      "# a job\n"
      "num-proc = 2   # two\n"
      "hosts = \"s[1-2,4]:2,b:1\"\n"
      "export = [\"A=1\", \"B\"]\n"
      "[timeline]\n"
      "filename = \"/tmp/t.json\"\n";
  CHECK(toml_entries(text, TomlDialect::kToml, "f") == Entries{{"num-proc", {"2"}},
                                                               {"hosts", {"s[1-2,4]:2,b:1"}},
                                                               {"export", {"A=1", "B"}},
                                                               {"timeline.filename", {"/tmp/t.json"}}});
}

TEST_CASE("INI files need no quotes", "[unit]") {
  CHECK(toml_entries("; a job\nhosts=a:1\nnum-proc=2\n", TomlDialect::kIni, "f") ==
        Entries{{"hosts", {"a:1"}}, {"num-proc", {"2"}}});
}

TEST_CASE("a '#' that the reader would lose is refused, not lost", "[unit]") {
  CHECK_THROWS_WITH(toml_entries("a = 1\nwdir = \"/a#b\"\n", TomlDialect::kToml, "job.toml"),
                    "file job.toml: line 2: a '#' inside quotes cannot be read here; use a YAML file");
  CHECK(toml_entries("num-proc = 2 # don't\n", TomlDialect::kToml, "f") == Entries{{"num-proc", {"2"}}});
}
