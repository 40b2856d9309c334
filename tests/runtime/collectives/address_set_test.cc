#include "runtime/collectives/address_set.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("the addresses of several backends come back one by one", "[runtime][unit]") {
  const std::vector<std::string> addresses{"", std::string("a\0b", 3), "\xff"};
  CHECK(split_addresses(join_addresses(addresses), 3, 1) == addresses);
  CHECK(split_addresses(join_addresses({}), 0, 1).empty());
}

TEST_CASE("an address that is not one of as many backends is an error that names its rank", "[runtime][unit]") {
  CHECK_THROWS_WITH(split_addresses(join_addresses({"a"}), 2, 3),
                    "rank 3 has 1 backends, this rank has 2: all ranks need the same");
  for (const std::string& bad :
       {std::string(), std::string("nonsense"), std::string("\x41 a"), std::string("\xa1\x61k\x41 "),
        std::string("\x81\x61 a"), std::string(200'000, '\x81')}) {
    CHECK_THROWS_WITH(split_addresses(bad, 1, 3),
                      ContainsSubstring("rank 3 has sent a malformed address of its backends: "));
  }
}
