#include "base/parse.hpp"

#include <chrono>
#include <limits>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

TEST_CASE("parse_integer takes the whole text or refuses it by name", "[unit]") {
  CHECK(parse_integer("0", "-np", 0, 10) == 0);
  CHECK(parse_integer("+7", "-np", 0, 10) == 7);
  CHECK(parse_integer("-7", "x", -10, 10) == -7);
  for (const char* bad : {"", " 1", "1 ", "1x", "x", "0x10", "11", "-1", "1.0", "99999999999999999999"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_integer(bad, "-np", 0, 10), Error);
  }
  CHECK_THROWS_WITH(parse_integer("two", "-np", 1, 8), "-np: 'two' is not a whole number from 1 to 8");
  CHECK_THROWS_WITH(parse_integer("0", "-np", 1, std::numeric_limits<std::int64_t>::max()),
                    "-np: '0' is not a whole number of at least 1");
}

TEST_CASE("parse_number takes a number within its bounds", "[unit]") {
  CHECK(parse_number("0.8", "--x", 0, 1) == 0.8);
  CHECK(parse_number("+1", "--x", 0, 1) == 1);
  CHECK(parse_number("-1", "--x", -1, 1) == -1);
  for (const char* bad : {"", "5", "-0.1", "nan", "0.5x", "half"}) {
    INFO(bad);
    CHECK_THROWS_WITH(parse_number(bad, "--x", 0, 1), ContainsSubstring("is not a number from 0 to 1"));
  }
}

TEST_CASE("parse_bool accepts the usual words and nothing else", "[unit]") {
  for (const char* yes : {"1", "2", "10", "true", "True", "YES", "on"}) CHECK(parse_bool(yes, "v"));
  for (const char* no : {"0", "false", "FALSE", "no", "off"}) CHECK_FALSE(parse_bool(no, "v"));
  for (const char* bad : {"", "-1", "1x", "1.5", "yess", "tru", " 1"}) CHECK_THROWS_AS(parse_bool(bad, "v"), Error);
}

TEST_CASE("parse_bytes reads units as powers of 1024", "[unit]") {
  CHECK(parse_bytes("64MB", "v") == 64 << 20);
  CHECK(parse_bytes("64m", "v") == 64 << 20);
  CHECK(parse_bytes("512KiB", "v") == 512 << 10);
  CHECK(parse_bytes("1G", "v") == 1 << 30);
  CHECK(parse_bytes("134217728", "v") == 134217728);
  CHECK(parse_bytes("0", "v") == 0);
  for (const char* bad : {"", "MB", "64XB", "-1", "64 MB", "9999999999G"})
    CHECK_THROWS_AS(parse_bytes(bad, "v"), Error);
}

TEST_CASE("parse_milliseconds reads a number without a unit", "[unit]") {
  CHECK(parse_milliseconds("0", "v") == 0us);
  CHECK(parse_milliseconds("0.25", "v") == 250us);
  CHECK(parse_milliseconds("3600000", "v") == 1h);
  for (const char* bad : {"", "ms", "-1", "1ms", "1 ", "nan", "3600001"})
    CHECK_THROWS_WITH(parse_milliseconds(bad, "v"), ContainsSubstring("milliseconds such as 1 or 0.25"));
}

TEST_CASE("parse_duration reads seconds unless a unit is given", "[unit]") {
  CHECK(parse_duration("30", "v") == 30s);
  CHECK(parse_duration("0.5", "v") == 500ms);
  CHECK(parse_duration("500ms", "v") == 500ms);
  CHECK(parse_duration("10m", "v") == 10min);
  CHECK(parse_duration("2h", "v") == 2h);
  for (const char* bad : {"", "s", "-1", "1 s", "nan", "inf", "1e30", "5d"})
    CHECK_THROWS_AS(parse_duration(bad, "v"), Error);
}
