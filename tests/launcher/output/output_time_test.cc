#include "launcher/output/output_time.hpp"

#include <cstdlib>
#include <ctime>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// The time zone for as long as it lives.
class TimeZone {
 public:
  explicit TimeZone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  ~TimeZone() {
    ::unsetenv("TZ");
    ::tzset();
  }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;
};

constexpr std::int64_t kTime = 1'579'518'001'000'042;  // 2020-01-20 11:00:01 UTC

}  // namespace

TEST_CASE("a time is written as asked for, in the local time zone", "[unit]") {
  const TimeZone zone("XYZ-5:30");
  CHECK(OutputTime(OutputTime::Format::kNone).text(kTime).empty());
  CHECK(OutputTime(OutputTime::Format::kSeconds).text(kTime) == "Mon Jan 20 16:30:01 2020");
  OutputTime time(OutputTime::Format::kMicroseconds);
  CHECK(time.text(kTime) == "2020-01-20T16:30:01.000042+05:30 ");
  CHECK(time.text(kTime + 1) == "2020-01-20T16:30:01.000043+05:30 ");
  CHECK(time.text(kTime + 1'000'000) == "2020-01-20T16:30:02.000042+05:30 ");
}

TEST_CASE("a time zone west of Greenwich has a minus", "[unit]") {
  const TimeZone zone("XYZ+8");
  CHECK(OutputTime(OutputTime::Format::kMicroseconds).text(kTime) == "2020-01-20T03:00:01.000042-08:00 ");
}
