#include "runtime/negotiation/control_message.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Status;

namespace {

std::vector<Request> sample_requests() {
  std::vector<Request> requests;
  requests.push_back({"a",
                      {.kind = Kind::kAllreduce,
                       .dtype = DType::kBfloat16,
                       .op = ReduceOp::kProduct,
                       .prescale = 0.1,
                       .postscale = -3,
                       .shape = {1, 2, 3}}});
  requests.push_back({std::string("with\0zero", 9), {.kind = Kind::kBroadcast, .root = 3}});
  requests.push_back({"compressed", {.kind = Kind::kAllreduce, .wire = DType::kFloat16}});
  requests.push_back({"splits", {.kind = Kind::kAlltoall, .shape = {3, 1}, .splits = {1, 2}}});
  requests.push_back({"group", {.kind = Kind::kAllgather, .group = {{DType::kBool, {3}}, {DType::kInt64, {0, 2}}}}});
  requests.push_back({"obstacle", {.kind = Kind::kAllreduce, .obstacle = Status(Errc::kUnavailable, "no GPU")}});
  return requests;
}

}  // namespace

TEST_CASE("a request comes back as it was", "[runtime][unit]") {
  for (const Request& request : sample_requests()) CHECK(decode_request(encode(request)) == request);
}

TEST_CASE("decisions that differ have other bytes", "[runtime][unit]") {
  Decision decision;
  decision.name = "x";
  const std::string bytes = encode(decision);
  CHECK(encode(decision) == bytes);
  Decision gathered = decision, rejected = decision, joined = decision;
  gathered.first_extents = {0, 5};
  rejected.type = Decision::Type::kReject;
  rejected.status = Status(Errc::kMismatch, "no");
  joined.for_joined = std::make_shared<Signature>(Signature{.kind = Kind::kAllreduce});
  for (const Decision& other : {gathered, rejected, joined}) CHECK(encode(other) != bytes);
}

TEST_CASE("every truncation and any trailing byte of a request is refused", "[runtime][unit]") {
  for (const Request& request : sample_requests()) {
    const std::string bytes = encode(request);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      REQUIRE_THROWS_WITH(decode_request(bytes.substr(0, length)), ContainsSubstring("malformed"));
    CHECK_THROWS_AS(decode_request(bytes + "x"), runjob::Error);
  }
  CHECK_THROWS_AS(decode_request("\xff\xff\xff\xff"), runjob::Error);
}

TEST_CASE("no changed byte makes decoding read beyond the request or allocate without bound", "[runtime][unit]") {
  for (const Request& request : sample_requests()) {
    const std::string bytes = encode(request);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
        std::string changed = bytes;
        changed[i] = value;
        try {
          decode_request(changed);
        } catch (const runjob::Error& error) {
          REQUIRE(error.code() == Errc::kProtocol);
        }
      }
    }
  }
}
