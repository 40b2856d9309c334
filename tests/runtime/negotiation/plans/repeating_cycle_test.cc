#include "runtime/negotiation/plans/repeating_cycle.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace runjob::runtime;
using Event = RepeatingCycle::Event;

namespace {

/// What the letters of `text` give, one after the other; a capital one begins something.
std::string events(RepeatingCycle& cycle, const std::string& text) {
  std::string result;
  for (const char letter : text) {
    const bool begins = letter < 'a';
    const auto id = static_cast<std::uint32_t>(letter - (begins ? 'A' : 'a'));
    const Event event = cycle.agreed({id, 4, begins});
    result += event == Event::kNone ? '.' : event == Event::kEnded ? '|' : '!';
  }
  return result;
}

std::string steps(const RepeatingCycle& cycle) {
  std::string text;
  for (const auto& step : cycle.steps()) text += static_cast<char>((step.begins ? 'A' : 'a') + step.id);
  return text;
}

}  // namespace

TEST_CASE("a cycle repeats when its last operation comes, in whatever order", "[runtime][unit]") {
  RepeatingCycle cycle;
  CHECK(events(cycle, "abc") == "...");
  CHECK(events(cycle, "bca") == "|.!");
  CHECK(steps(cycle) == "bca");
  CHECK(events(cycle, "cbacba") == "..!..!");
}

TEST_CASE("another operation makes it another cycle", "[runtime][unit]") {
  RepeatingCycle cycle;
  events(cycle, "abab");
  CHECK(events(cycle, "cab") == "...");
  CHECK(events(cycle, "cab") == "|.!");
  CHECK(events(cycle, "ab") == "..");
  CHECK(events(cycle, "ab") == "|!");
  CHECK(events(cycle, "ab") == ".!");
}

TEST_CASE("a step begins something when it did in either of two cycles", "[runtime][unit]") {
  RepeatingCycle cycle;
  CHECK(events(cycle, "AbcaBc") == "...|.!");
  CHECK(steps(cycle) == "ABc");
  CHECK(events(cycle, "abc") == "..!");
  CHECK(steps(cycle) == "aBc");
}

TEST_CASE("a loop around one operation is told once", "[runtime][unit]") {
  RepeatingCycle cycle;
  CHECK(events(cycle, "aaaaa") == ".!...");
  CHECK(events(cycle, "bab") == "..|");
}

TEST_CASE("an interruption makes nothing of what was before", "[runtime][unit]") {
  RepeatingCycle cycle;
  events(cycle, "ab");
  cycle.interrupted();
  CHECK(events(cycle, "ab") == "..");
  CHECK(events(cycle, "ab") == "|!");
}
