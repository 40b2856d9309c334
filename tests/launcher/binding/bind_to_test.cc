#include "launcher/binding/bind_to.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("what a rank is bound to has Open MPI's names", "[unit]") {
  for (const BindTo each :
       {BindTo::kNone, BindTo::kCore, BindTo::kNuma, BindTo::kSocket, BindTo::kSharedCore, BindTo::kGpu})
    CHECK(parse_bind_to(to_string(each), "") == each);
  CHECK(parse_bind_to("core", "") == BindTo::kCore);
  CHECK(parse_bind_to("core:overload", "") == BindTo::kSharedCore);
  CHECK(parse_bind_to("numa:overload-allowed", "") == BindTo::kNuma);  // NUMA nodes are shared anyway
  CHECK_THROWS_WITH(parse_bind_to("hwthread", "-bind-to"),
                    "-bind-to: 'hwthread' is not none, core, numa, socket or gpu");
}
