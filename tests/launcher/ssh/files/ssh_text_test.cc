#include "launcher/ssh/files/ssh_text.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("words are cut at blanks of every kind", "[unit]") {
  std::string_view line = " \t one two\r\n";
  CHECK(take_word(line) == "one");
  CHECK(take_word(line) == "two");
  CHECK(take_word(line).empty());
  CHECK(line.empty());
}

TEST_CASE("only the letters of ASCII have a case", "[unit]") {
  CHECK(lower_case("AbZ-\xc3\x84") == "abz-\xc3\x84");
}

TEST_CASE("a pattern matches a whole name", "[unit]") {
  CHECK(matches_pattern("s1", "s1"));
  CHECK(matches_pattern("s1", "s?"));
  CHECK(matches_pattern("s1.example.org", "*.example.org"));
  CHECK(matches_pattern("s1.example.org", "s*.*.org"));
  CHECK(matches_pattern("anything", "*"));
  CHECK(matches_pattern("", "*"));
  CHECK(matches_pattern("a", "**a**"));
  CHECK_FALSE(matches_pattern("s1", "s"));
  CHECK_FALSE(matches_pattern("s1", "s1?"));
  CHECK_FALSE(matches_pattern("s1", "S1"));
  CHECK_FALSE(matches_pattern("", "?"));
  CHECK_FALSE(matches_pattern("s1.example.com", "*.example.org"));
}

TEST_CASE("a pattern with many stars ends soon on a long name", "[unit]") {
  const std::string name(5000, 'a');
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "*a";
  CHECK_FALSE(matches_pattern(name, pattern + "b"));
}

TEST_CASE("a negated pattern takes away what another one matched, wherever it stands", "[unit]") {
  CHECK(matches_patterns("s1", {"s*", "!s2"}));
  CHECK_FALSE(matches_patterns("s2", {"s*", "!s2"}));
  CHECK_FALSE(matches_patterns("s2", {"!s2", "s*"}));
  CHECK_FALSE(matches_patterns("t1", {"!s2"}));
  CHECK_FALSE(matches_patterns("t1", {}));
}
