#include "cli/options/help.hpp"

#include <sstream>

#include "cli/options/option_table.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("option --help names every option, spelling and first variable within 100 columns", "[unit]") {
  const std::string text = help_text();
  for (const Option& option : option_table()) {
    if (!option.is_in_help()) continue;
    CHECK_THAT(text, ContainsSubstring("--" + std::string(option.name)));
    for (const auto name : option.short_names) CHECK_THAT(text, ContainsSubstring(std::string(name) + ","));
    if (!option.variables.empty()) CHECK_THAT(text, ContainsSubstring(std::string(option.variables.front())));
  }
  CHECK_THAT(text, !ContainsSubstring("--serve-call"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 100);
    CHECK((line.empty() || line.back() != ' '));
  }
}
