#include "launcher/bind_to.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("what a rank is bound to has Open MPI's names", "[unit]") {
  for (const BindTo each : {BindTo::kNone, BindTo::kCore, BindTo::kNuma, BindTo::kSocket})
    CHECK(parse_bind_to(to_string(each), "") == each);
  CHECK(parse_bind_to("core", "") == BindTo::kCore);
  CHECK_THROWS_WITH(parse_bind_to("hwthread", "-bind-to"), "-bind-to: 'hwthread' is not none, core, numa or socket");
}
