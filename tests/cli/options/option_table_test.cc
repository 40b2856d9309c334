#include "cli/options/option_table.hpp"

#include <set>

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("no two options share a name, a spelling, a variable or a key", "[unit]") {
  std::set<std::string> seen;
  for (const Option& option : option_table()) {
    INFO(option.name);
    CHECK(seen.insert("--" + std::string(option.name)).second);
    for (const auto name : option.short_names) CHECK(seen.insert(std::string(name)).second);
    for (const auto name : option.foreign_names) CHECK(seen.insert(std::string(name)).second);
    for (const auto variable : option.variables) CHECK(seen.insert(std::string(variable)).second);
    if (!option.horovodrun_key.empty()) CHECK(seen.insert(std::string(option.horovodrun_key)).second);
    CHECK_FALSE(option.help.empty());
  }
}

TEST_CASE("an option that is no action has a variable of its own name", "[unit]") {
  for (const Option& option : option_table()) {
    if (option.is_action || option.adds_up || option.is_foreign()) continue;
    std::string variable = "RUNJOB_" + std::string(option.name);
    for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    CHECK(option.variables.front() == variable);
  }
}

TEST_CASE("find_option knows long names only", "[unit]") {
  REQUIRE(find_option("hosts") != nullptr);
  CHECK(find_option("hosts")->name == "hosts");
  CHECK(find_option("-H") == nullptr);
  CHECK(find_option("") == nullptr);
}
