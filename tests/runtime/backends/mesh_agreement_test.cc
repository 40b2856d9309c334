#include "runtime/backends/mesh_agreement.hpp"

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/host_offer.hpp"
#include "runtime/collectives/shm/memory/sharing.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// The part of an address about shared memory of a rank in container `host`.
std::string sharing(const std::string& host, const std::string& refusal = "") {
  return encode(SharingOffer{
      .refusal = refusal, .place = {host, "", "", ""}, .processors = "", .path = "", .name = "", .token = ""});
}

/// The address of a hierarchical backend that asks for shared memory; one that does not has "" in place of it.
std::string offer(const std::string& sharing, const std::string& settings = "s") {
  return encode(HostOffer{sharing, "", "t", "", {}, settings});
}

}  // namespace

TEST_CASE("ranks of one host that can share memory are one group", "[runtime][unit]") {
  const MeshAgreement agreement = agree_on_mesh({sharing("a"), sharing("a")}, {0, 0});
  CHECK(agreement.groups == std::vector<int>{0, 0});
  CHECK(agreement.is_as_prepared);
  CHECK(agreement.sharing_objection.empty());
}

TEST_CASE("ranks of different hosts need not share anything", "[runtime][unit]") {
  const auto agreement = agree_on_mesh(
      {offer(sharing("a")), offer(sharing("a")), offer(sharing("b")), offer(sharing("c", "no /proc"))}, {4, 4, 5, 6});
  CHECK(agreement.groups == std::vector<int>{0, 0, 1, 2});
  CHECK(agreement.is_as_prepared);
  CHECK(agreement.sharing_objection.empty());
}

TEST_CASE("ranks that all have shared memory switched off are groups of their own, as they prepared",
          "[runtime][unit]") {
  const MeshAgreement agreement = agree_on_mesh({offer(""), offer(""), offer("")}, {0, 0, 1});
  CHECK(agreement.groups[0] != agreement.groups[1]);
  CHECK(agreement.is_as_prepared);
  CHECK(agreement.sharing_objection.empty());
}

TEST_CASE("a rank that has shared memory switched off separates its host's ranks, who need new addresses",
          "[runtime][unit]") {
  const MeshAgreement agreement = agree_on_mesh({sharing("a"), offer(""), sharing("a")}, {0, 0, 0});
  CHECK(agreement.groups[0] != agreement.groups[2]);
  CHECK_FALSE(agreement.is_as_prepared);
  CHECK(agreement.sharing_objection == "rank 1 has it switched off");
}

TEST_CASE("a host whose ranks cannot share memory leaves the other hosts their groups", "[runtime][unit]") {
  const std::vector<int> hosts{0, 0, 1, 1};
  const std::string a = offer(sharing("a")), b = offer(sharing("b")), c = offer(sharing("c"));
  const MeshAgreement split = agree_on_mesh({a, a, b, c}, hosts);
  CHECK(split.groups[0] == split.groups[1]);
  CHECK(split.groups[2] != split.groups[3]);
  CHECK_FALSE(split.is_as_prepared);
  CHECK(split.sharing_objection == "rank 3 is on another kernel than rank 2");
  CHECK(agree_on_mesh({a, a, b, offer(sharing("b", "no memfd"))}, hosts).sharing_objection == "rank 3: no memfd");
  const MeshAgreement off = agree_on_mesh({a, a, offer(""), offer("")}, hosts);
  CHECK(off.groups[0] == off.groups[1]);
  CHECK(off.groups[2] != off.groups[3]);
  CHECK_FALSE(off.is_as_prepared);
  CHECK(off.sharing_objection.empty());
}

TEST_CASE("ranks with different settings use none of them", "[runtime][unit]") {
  const std::string zero = offer(sharing("a")), one = offer(sharing("b"), "t");
  const MeshAgreement agreement = agree_on_mesh({zero, one}, {0, 1});
  CHECK(agreement.is_flat);
  CHECK_FALSE(agreement.is_as_prepared);
  CHECK(agreement.settings_objection == "rank 1 has 't', but rank 0 's'");
  CHECK_FALSE(agree_on_mesh({zero, zero}, {0, 1}).is_flat);
}

TEST_CASE("a malformed address is a protocol error", "[runtime][unit]") {
  CHECK_THROWS_WITH(agree_on_mesh({offer(""), offer("").substr(0, 25)}, {0, 1}, {2, 5}),
                    ContainsSubstring("the address of rank 5 is malformed"));
}
