#include "base/process/float_environment.hpp"

#include <cfenv>

#include "tests/catch.hpp"

using runjob::DefaultFloatEnvironment;

namespace {

/// While the program runs, not while it is compiled.
double divide(double a, double b) {
  volatile double divisor = b;
  return a / divisor;
}

}  // namespace

TEST_CASE("the default environment holds for a time, and then that of before", "[unit]") {
  const double third = divide(1, 3);
  REQUIRE(std::fesetround(FE_UPWARD) == 0);
  const double upward = divide(1, 3);
  double inside = 0;
  {
    const DefaultFloatEnvironment guard;
    inside = divide(1, 3);
  }
  const double after = divide(1, 3);
  std::fesetround(FE_TONEAREST);
  CHECK(upward > third);
  CHECK(inside == third);
  CHECK(after == upward);
}

TEST_CASE("in the default environment nothing changes but the flags of what has happened", "[unit]") {
  {
    const DefaultFloatEnvironment guard;
    static_cast<void>(divide(1, 0));
  }
  CHECK(std::fetestexcept(FE_DIVBYZERO) != 0);
  std::feclearexcept(FE_ALL_EXCEPT);
  CHECK(std::fegetround() == FE_TONEAREST);
}
