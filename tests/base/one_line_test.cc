#include "base/one_line.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("one_line keeps text and escapes what would move a terminal", "[unit]") {
  CHECK(one_line("a b \xc3\xa4") == "a b \xc3\xa4");
  CHECK(one_line("a\nb\tc\x1b[31m\x7f") == "a\\nb\\tc\\x1b[31m\\x7f");
  CHECK(one_line("a\xc2\x9b"
                 "2J\x9b"
                 "\xe9") == "a\\x9b2J\\x9b\xe9");
  CHECK(one_line("").empty());
}
