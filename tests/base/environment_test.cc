#include "base/environment.hpp"

#include <cstdlib>

#include "tests/catch.hpp"

TEST_CASE("current_environment holds every variable with its bytes", "[unit]") {
  REQUIRE(::setenv("RUNJOB_TEST_VARIABLE", "line one\nline=two \xff", 1) == 0);
  const runjob::Environment environment = runjob::current_environment();
  REQUIRE(environment.count("RUNJOB_TEST_VARIABLE") == 1);
  CHECK(environment.at("RUNJOB_TEST_VARIABLE") == "line one\nline=two \xff");
  REQUIRE(::unsetenv("RUNJOB_TEST_VARIABLE") == 0);
}
