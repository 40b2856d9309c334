#include "launcher/ssh/message_lines.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("text becomes lines however it is cut", "[unit]") {
  std::vector<std::string> lines;
  MessageLines messages([&](std::string_view line) { lines.emplace_back(line); });
  for (const char* part : {"one\ntw", "o\r\n\n", "", "three", "\nfo"}) messages.add(part);
  CHECK(lines == std::vector<std::string>{"one", "two", "three"});
  messages.add("ur");
  messages.finish();
  messages.finish();
  CHECK(lines.back() == "four");
  CHECK(lines.size() == 4);
}

TEST_CASE("a line without an end is cut", "[unit]") {
  std::vector<std::string> lines;
  MessageLines messages([&](std::string_view line) { lines.emplace_back(line); });
  messages.add(std::string(10'000, 'x'));
  messages.finish();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].size() == 4096);
  CHECK(lines[0].size() + lines[1].size() + lines[2].size() == 10'000);
}
