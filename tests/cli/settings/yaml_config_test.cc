#include "cli/settings/yaml_config.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using Entries = std::vector<ConfigEntry>;

TEST_CASE("nested YAML maps become dotted keys", "[unit]") {
  CHECK(yaml_entries("timeline:\n  filename: /t.json\n  mark_cycles: true\nhosts: [a, b]\nwdir: '/a#b'\n", "f") ==
        Entries{{"timeline.filename", {"/t.json"}, 2},
                {"timeline.mark_cycles", {"true"}, 3},
                {"hosts", {"a", "b"}, 4},
                {"wdir", {"/a#b"}, 5}});
  CHECK(yaml_entries("a: 1\nb:\n\nc: 2\n", "f") == Entries{{"a", {"1"}, 1}, {"b", {}, 2}, {"c", {"2"}, 4}});
  CHECK(yaml_entries("", "f").empty());
  CHECK(yaml_entries("# nothing\n", "f").empty());
}

TEST_CASE("YAML that is no config is an error with its line", "[unit]") {
  CHECK_THROWS_WITH(yaml_entries("- a\n- b\n", "j.yaml"), "file j.yaml: line 1: expected 'key: value' lines");
  CHECK_THROWS_WITH(yaml_entries("a:\n  - [1]\n", "j.yaml"),
                    "file j.yaml: line 2: expected plain values in the list a");
  CHECK_THROWS_WITH(yaml_entries("a: [1\n", "j.yaml"), ContainsSubstring("file j.yaml: line "));
  CHECK_THROWS_WITH(yaml_entries("? [a]\n: 1\n", "j.yaml"), ContainsSubstring("expected a word as key"));
  CHECK_THROWS_WITH(yaml_entries("a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: 1}}}}}}}}}}\n", "j.yaml"),
                    ContainsSubstring("expected fewer levels of keys"));
}

TEST_CASE("a YAML file that refers to itself ends", "[unit]") {
  CHECK_THROWS_AS(yaml_entries("a: &x\n  b: *x\n", "j.yaml"), Error);
}
