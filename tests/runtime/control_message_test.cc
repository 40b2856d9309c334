#include "runtime/engine/control_message.hpp"

#include "base/error.hpp"
#include "runtime/engine/bootstrap_blob.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

RankMessage sample_message() {
  RankMessage message;
  message.requests.push_back({"a",
                              {.kind = Kind::kAllreduce,
                               .dtype = DType::kBfloat16,
                               .op = ReduceOp::kProduct,
                               .prescale = 0.1,
                               .postscale = -3,
                               .shape = {1, 2, 3}}});
  message.requests.push_back({std::string("with\0zero", 9), {.kind = Kind::kBroadcast, .root = 3}});
  message.requests.push_back({"compressed", {.kind = Kind::kAllreduce, .wire = DType::kFloat16}});
  message.requests.push_back(
      {"group", {.kind = Kind::kAllgather, .group = {{DType::kBool, {3}}, {DType::kInt64, {0, 2}}}}});
  message.status = Status(Errc::kTimeout, "too slow");
  return message;
}

}  // namespace

TEST_CASE("a rank's message comes back as it was", "[runtime][unit]") {
  const RankMessage message = sample_message();
  const RankMessage back = decode_rank_message(encode(message));
  CHECK(back.type == message.type);
  CHECK(back.requests == message.requests);
  CHECK(back.status.code() == Errc::kTimeout);
  CHECK(back.status.message() == "too slow");
}

TEST_CASE("decisions come back as they were", "[runtime][unit]") {
  std::vector<Decision> decisions(2);
  decisions[0].name = "x";
  decisions[0].first_extents = {0, 5};
  decisions[0].for_joined = std::make_shared<Signature>(
      Signature{.kind = Kind::kAllreduce, .dtype = DType::kInt8, .prescale = 2, .shape = {4, 4}});
  decisions[1].type = Decision::Type::kAbort;
  decisions[1].status = Status(Errc::kPeerLost, "rank 1 is gone");
  const auto back = decode_decisions(encode(decisions));
  REQUIRE(back.size() == 2);
  CHECK(back[0].first_extents == std::vector<std::int64_t>{0, 5});
  CHECK(*back[0].for_joined == *decisions[0].for_joined);
  CHECK_FALSE(back[1].for_joined);
  CHECK(back[1].type == Decision::Type::kAbort);
  CHECK(back[1].status.message() == "rank 1 is gone");
}

TEST_CASE("every truncation and any trailing byte is refused", "[runtime][unit]") {
  const std::string bytes = encode(sample_message());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    REQUIRE_THROWS_WITH(decode_rank_message(bytes.substr(0, length)), ContainsSubstring("malformed"));
  }
  CHECK_THROWS_AS(decode_rank_message(bytes + "x"), runjob::Error);
  CHECK_THROWS_AS(decode_decisions("\xff\xff\xff\xff"), runjob::Error);
}

TEST_CASE("no changed byte makes decoding read beyond the message or allocate without bound", "[runtime][unit]") {
  const std::string bytes = encode(sample_message());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[i] = value;
      try {
        decode_rank_message(changed);
      } catch (const runjob::Error& error) {
        REQUIRE(error.code() == Errc::kProtocol);
      }
    }
  }
}
