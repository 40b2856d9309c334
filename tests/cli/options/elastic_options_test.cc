#include "cli/options/elastic_options.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("every option of elastic jobs is in the table, in their part of the help, with a variable", "[unit]") {
  REQUIRE(elastic_options().size() >= 9);
  for (const Option& option : elastic_options()) {
    INFO(option.name);
    CHECK(find_option(option.name) != nullptr);
    CHECK(option.group == OptionGroup::kElastic);
    CHECK_FALSE(option.variables.empty());
    CHECK_FALSE(option.value.empty());
  }
}
