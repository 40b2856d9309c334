#include "runtime/collectives/hierarchical/host_offer.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("an offer survives its encoding", "[runtime][unit]") {
  const HostOffer offer{std::string("a\0b", 3), "\x03", "\xff", "", "\xfe", "x"};
  CHECK(decode_host_offer(encode(offer), 3) == offer);
  CHECK(is_host_offer(encode(offer)));
  CHECK_FALSE(is_host_offer("something else"));
  CHECK_THROWS_WITH(decode_host_offer("something else", 3),
                    "the address of rank 3 is not one of a job on several hosts");
  CHECK_THROWS_WITH(decode_host_offer(encode(offer).substr(0, 25), 3),
                    ContainsSubstring("the address of rank 3 is malformed: "));
}
