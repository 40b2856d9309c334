#include "launcher/output/output_tag.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

using Time = OutputTime::Format;

std::string tag(std::string_view style, Time time = Time::kNone) {
  return output_tag(parse_tag_style(style, "--tag-output"), time, 3, "s1", Stream::kStderr, false);
}

}  // namespace

TEST_CASE("a line's tag has the parts that are asked for, in one order", "[unit]") {
  CHECK(output_tag({}, Time::kNone, 0, "s1", Stream::kStdout, false) == "[0]<stdout>:");
  CHECK(tag("rank,stream") == "[3]<stderr>:");
  CHECK(tag("stream,host,rank") == "[3 s1]<stderr>:");
  CHECK(tag("rank") == "[3]:");
  CHECK(tag("host") == "[s1]:");
  CHECK(tag("stream") == "<stderr>:");
  CHECK(tag("time").empty());
  CHECK(tag("none").empty());
  CHECK(tag("none", Time::kSeconds) == ":");
  CHECK(tag("none", Time::kMicroseconds).empty());
  CHECK(tag("rank", Time::kSeconds) == "[3]:");
  CHECK(parse_tag_style("time,rank", "").time);
  CHECK(parse_tag_style("none", "").none());
}

TEST_CASE("each rank's tag has a colour, as long as there are any", "[unit]") {
  const auto coloured = [](int rank) { return output_tag({}, Time::kNone, rank, "s1", Stream::kStdout, true); };
  CHECK(coloured(0) == "\x1b[36m[0]<stdout>:\x1b[0m");
  CHECK(coloured(1).substr(0, 5) != coloured(0).substr(0, 5));
  CHECK(coloured(6) == "\x1b[36m[6]<stdout>:\x1b[0m");
  CHECK(output_tag({false, false, false, false}, Time::kNone, 0, "s1", Stream::kStdout, true).empty());
}

TEST_CASE("a tag style that is none is an error", "[unit]") {
  for (const char* bad : {"", "ranks", "rank,", "none,rank", "rank, host"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_tag_style(bad, "--tag-output"), Error);
  }
  CHECK_THROWS_WITH(parse_tag_style("pid", "--tag-output"),
                    "--tag-output: 'pid' is neither none nor a list of rank, stream, host and time");
}
