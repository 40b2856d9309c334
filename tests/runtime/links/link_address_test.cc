#include "runtime/links/link_address.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("a link's address comes back as it was", "[runtime][unit]") {
  LinkAddress address{"fe80::1%eth0", 65535, {}};
  address.nonce.fill(0x80);
  CHECK(decode_link_address(encode(address), "rank 1") == address);
}

TEST_CASE("a cut address is an error that names its rank", "[runtime][unit]") {
  for (const std::size_t bytes : {0, 1, 33, 34}) {
    CHECK_THROWS_WITH(decode_link_address(std::string(bytes, 'x'), "rank 1"), "the address of rank 1 is cut");
  }
}
