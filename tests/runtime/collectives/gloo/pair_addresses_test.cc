#include "runtime/collectives/gloo/pair_addresses.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("addresses of pairs survive their encoding, and cut ones are refused", "[runtime][unit]") {
  const PairAddresses addresses{
      {{Way::kShort, 3}, std::string("a\0b", 3)}, {{Way::kLong, 3}, ""}, {{Way::kLong, 70000}, "c"}};
  const std::string bytes = encode(addresses);
  CHECK(decode_pair_addresses(bytes) == addresses);
  CHECK(decode_pair_addresses("").empty());
  CHECK_THROWS_WITH(decode_pair_addresses(bytes.substr(0, bytes.size() - 1)), "a rank's Gloo addresses are cut");
  CHECK_THROWS_WITH(decode_pair_addresses("abc"), "a rank's Gloo addresses are cut");
}
