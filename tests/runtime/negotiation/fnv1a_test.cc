#include "runtime/negotiation/fnv1a.hpp"

#include "tests/catch.hpp"

TEST_CASE("the FNV-1a hash has its published values", "[base][unit]") {
  using runjob::runtime::fnv1a;
  CHECK(fnv1a("") == 0xCBF29CE484222325);
  CHECK(fnv1a("a") == 0xAF63DC4C8601EC8C);
  CHECK(fnv1a("foobar") == 0x85944171F73967E8);
  CHECK(fnv1a({"\xff\0", 2}) != fnv1a("\xff"));
}
