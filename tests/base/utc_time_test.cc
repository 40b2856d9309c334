#include "base/utc_time.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using std::chrono::milliseconds;
using std::chrono::system_clock;

TEST_CASE("a time is written in UTC, to the millisecond, whatever the time zone is", "[unit]") {
  CHECK(utc_time(system_clock::time_point(milliseconds(0))) == "1970-01-01T00:00:00.000Z");
  CHECK(utc_time(system_clock::time_point(milliseconds(1'795'867'725'123))) == "2026-11-28T12:08:45.123Z");
}
