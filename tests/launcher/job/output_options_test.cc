#include "launcher/job/output_options.hpp"

#include "tests/catch.hpp"

using namespace runjob;

namespace {

JobSpec spec_on_a_terminal() {
  JobSpec spec;
  spec.allocation = allocate({{"s1", 2, "", {}, "", {}}, {"s2", 1, "", {}, "", {}}}, std::nullopt);
  spec.environment = {{"TERM", "xterm"}};
  return spec;
}

}  // namespace

TEST_CASE("by default all ranks are shown, with rows and colours on a terminal that has them", "[unit]") {
  JobSpec spec = spec_on_a_terminal();
  const OutputRelay::Options options = output_options(spec, 100);
  REQUIRE(options.ranks.size() == 3);
  CHECK(options.ranks[2].host == "s2");
  CHECK(options.ranks[2].shown);
  CHECK(options.terminal == TerminalUse::kRows);
  CHECK(options.colours);
  CHECK(options.time == OutputTime::Format::kNone);
  CHECK(options.window == 100);
  for (const char* terminal : {"", "dumb"}) {
    spec.environment["TERM"] = terminal;
    CHECK(output_options(spec, 100).terminal == TerminalUse::kLines);
    CHECK_FALSE(output_options(spec, 100).colours);
  }
}

TEST_CASE("NO_COLOR takes the colours, and no more", "[unit]") {
  JobSpec spec = spec_on_a_terminal();
  spec.environment["NO_COLOR"] = "1";
  CHECK_FALSE(output_options(spec, 0).colours);
  CHECK(output_options(spec, 0).terminal == TerminalUse::kRows);
  spec.environment["NO_COLOR"] = "";
  CHECK(output_options(spec, 0).colours);
}

TEST_CASE("the only rank that is shown, without tags, has the terminal to itself", "[unit]") {
  JobSpec spec = spec_on_a_terminal();
  spec.tags = {false, false, false, false};
  CHECK(output_options(spec, 0).terminal == TerminalUse::kRows);
  spec.output_ranks = {1};
  const OutputRelay::Options options = output_options(spec, 0);
  CHECK(options.terminal == TerminalUse::kUnchanged);
  CHECK_FALSE(options.ranks[0].shown);
  CHECK(options.ranks[1].shown);
  CHECK_FALSE(options.later_shown);
}

TEST_CASE("the more exact time wins", "[unit]") {
  JobSpec spec = spec_on_a_terminal();
  spec.prefix_output_with_timestamp = true;
  CHECK(output_options(spec, 0).time == OutputTime::Format::kSeconds);
  spec.tags.time = true;
  CHECK(output_options(spec, 0).time == OutputTime::Format::kMicroseconds);
}
