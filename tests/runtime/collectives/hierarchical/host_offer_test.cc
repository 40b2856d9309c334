#include "runtime/collectives/hierarchical/host_offer.hpp"

#include "base/error.hpp"
#include "runtime/collectives/shm/sharing.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

std::string offer(const std::string& host, const std::string& settings = "s", const std::string& refusal = "") {
  const SharingOffer sharing{.refusal = refusal, .host = host, .processors = "", .path = "", .token = ""};
  return encode(HostOffer{encode(sharing), "t", "", {}, settings});
}

}  // namespace

TEST_CASE("an offer survives its encoding", "[runtime][unit]") {
  const HostOffer offer{std::string("a\0b", 3), "\xff", "", {"127.0.0.1", 7, "\xfe"}, "x"};
  CHECK(decode_host_offer(encode(offer)) == offer);
  CHECK(is_host_offer(encode(offer)));
  CHECK_FALSE(is_host_offer("something else"));
  CHECK_THROWS_AS(decode_host_offer("something else"), runjob::Error);
  CHECK_THROWS_AS(decode_host_offer(encode(offer).substr(0, 25)), runjob::Error);
}

TEST_CASE("ranks of different hosts need not share anything", "[runtime][unit]") {
  CHECK_FALSE(objection_to_hosts({offer("a"), offer("a"), offer("b"), offer("c", "s", "no /proc")}, {0, 0, 1, 2}));
}

TEST_CASE("an objection names the rank by its number in the job", "[runtime][unit]") {
  CHECK(objection_to_hosts({offer("a"), "Gloo's"}, {0, 1}) == "rank 1 has it switched off");
  CHECK(objection_to_hosts({offer("a"), offer("b"), offer("c")}, {0, 1, 1}) ==
        "rank 2 is in another container or of another user than rank 1");
  CHECK(objection_to_hosts({offer("a"), offer("b"), offer("b", "s", "no memfd")}, {0, 1, 1}) == "rank 2: no memfd");
  CHECK(objection_to_hosts({offer("a"), offer("b", "t")}, {0, 1}) == "rank 1 has 't', but rank 0 's'");
}
