#include "runtime/collectives/nccl/offer.hpp"

#include "base/error.hpp"
#include "runtime/collectives/nccl/nccl_abi.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime::nccl;

namespace {

Offer offer(int rank, const std::string& gpu) {
  Offer made;
  made.rank = rank;
  made.gpu = gpu;
  made.nccl = 22809;
  made.path = "/lib/libnccl.so.2";
  return made;
}

}  // namespace

TEST_CASE("an offer has the same number of bytes whatever is in it", "[runtime][unit]") {
  Offer sent = offer(3, "GPU-1");
  sent.id = std::string("\0\x01 id", 5) + std::string(sizeof(UniqueId) - 5, 'i');
  sent.error = std::string(5000, 'e');
  sent.path = "/" + std::string(5000, 'p');
  sent.host_id = std::string(5000, 'h');
  const std::string bytes = encode(sent);
  CHECK(bytes.size() == kOfferBytes);
  CHECK(encode(Offer()).size() == kOfferBytes);
  const Offer read = decode_offer(bytes, 3);
  CHECK(read.rank == 3);
  CHECK(read.id == sent.id);
  CHECK(read.path == std::string(400, 'p'));
  CHECK(read.host_id == std::string(128, 'h'));
  CHECK(read.error == std::string(400, 'e'));
  for (const std::string& bad : {std::string(kOfferBytes, 'x'), std::string(), "00001656" + std::string(1656, '\x81'),
                                 "99999999999999999999" + bytes.substr(8)}) {
    CHECK_THROWS_WITH(decode_offer(bad, 3), ContainsSubstring("rank 3 has sent a malformed offer of its GPU: "));
  }
  CHECK_THROWS_WITH(decode_offer(bytes, 4), ContainsSubstring("it is one of rank 3"));
}

TEST_CASE("ranks have a communicator unless an offer forbids it", "[runtime][unit]") {
  std::vector<Offer> offers{offer(0, "GPU-1"), offer(1, "GPU-2")};
  CHECK(objection(offers).empty());
  offers[1].gpu = "GPU-1";
  CHECK_THAT(objection(offers), ContainsSubstring("ranks 0 and 1 use one GPU, GPU-1"));
  offers[1].host = 1;
  CHECK(objection(offers).empty());
  offers[1].host = 0;
  offers[0].host_id = offers[1].host_id = "x";
  CHECK_FALSE(objection(offers).empty());
  offers[1].host_id = "y";
  CHECK(objection(offers).empty());
  offers[1].host_id = "x";
  offers[0].may_share = offers[1].may_share = true;
  CHECK(objection(offers).ends_with("give each rank a GPU of its own"));  // NCCL 2.28.9 does not know the variable
  offers[0].nccl = offers[1].nccl = 23003;
  CHECK(objection(offers).empty());
  offers[1].may_share = false;
  CHECK_THAT(objection(offers), ContainsSubstring("or set NCCL_MULTI_RANK_GPU_ENABLE=1 on all ranks"));
  offers[0].nccl = 22809;
  offers[1].nccl = 23007;
  CHECK_THAT(objection(offers),
             ContainsSubstring("rank 0 has NCCL 2.28.9 (/lib/libnccl.so.2), rank 1 has NCCL 2.30.7"));
  runjob::runtime::cuda::Vendor other = runjob::runtime::cuda::kNvidia;
  other.name = "another";
  offers[1].vendor = &other;
  CHECK(objection(offers) ==
        "the ranks' GPUs are of different vendors: rank 0 has one of NVIDIA, rank 1 one of another");
  CHECK_THROWS_WITH(decode_offer(encode(offers[1]), 1), ContainsSubstring("no vendor of GPUs that runjob knows"));
  offers[1].error = "no NCCL";
  CHECK(objection(offers) == "rank 1 cannot use NCCL: no NCCL");
}

TEST_CASE("NCCL does not send between hosts what must be encrypted", "[runtime][unit]") {
  std::vector<Offer> offers{offer(0, "GPU-1"), offer(1, "GPU-2")};
  offers[1].must_encrypt = true;
  for (Offer& each : offers) each = decode_offer(encode(each), each.rank);
  CHECK_THAT(objection(offers), ContainsSubstring("NCCL does not encrypt what it sends between hosts") &&
                                    ContainsSubstring("RUNJOB_NCCL_UNENCRYPTED=1 on all ranks"));
}
