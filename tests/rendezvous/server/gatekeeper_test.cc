#include "rendezvous/server/gatekeeper.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace runjob::rendezvous;

namespace {

using Verdict = Gatekeeper::Verdict;

const JobKey kKey = JobKey::random();
const Nonce kNonce = random_nonce();

Gatekeeper::Head ask_for_nonce() {
  return {{"GET", kSessionTarget, ""}, to_hex(kNonce), "", ""};
}

/// The client's side of `gatekeeper`'s connection, which it asks for its nonce.
ConnectionAuth greet(Gatekeeper& gatekeeper, const JobKey& key = kKey) {
  REQUIRE(gatekeeper.admit(ask_for_nonce()) == Verdict::kAnswer);
  return {key, kNonce, from_hex(gatekeeper.nonce()).value()};
}

Gatekeeper::Head signed_by(ConnectionAuth& client, const Request& request) {
  const Digest digest = sha256(request.body);
  return {{request.method, request.target, "", request.process},
          "",
          to_hex(client.next_request(request, digest)),
          to_hex(digest)};
}

const Request kPut{"PUT", "/v1/kv/s/k", "value", 1};

}  // namespace

TEST_CASE("a peer that the socket vouches for asks anything unsigned", "[unit]") {
  for (const std::optional<JobKey>& key : {std::optional<JobKey>(), std::optional<JobKey>(kKey)}) {
    Gatekeeper gatekeeper(true, key);
    CHECK_FALSE(gatekeeper.is_stranger());
    CHECK(gatekeeper.admit({kPut, "", "", ""}) == Verdict::kPass);
    CHECK(gatekeeper.admit_body("value"));
    CHECK(gatekeeper.sign({200, "", {}}) == "");
  }
}

TEST_CASE("without a key there is no nonce to ask for", "[unit]") {
  Gatekeeper vouched_for(true, std::nullopt);
  CHECK(vouched_for.admit(ask_for_nonce()) == Verdict::kPass);  // like any path that is not there
  Gatekeeper stranger(false, std::nullopt);
  CHECK(stranger.admit(ask_for_nonce()) == Verdict::kRefuse);
}

TEST_CASE("a stranger gets nowhere but to a nonce", "[unit]") {
  for (const char* target :
       {"/v1/status", "/v1/join", "/v1/kv/s/k", "/v1/gather/x", "/", "", "/v1/session/", "/v1/session?x=1", "*"}) {
    Gatekeeper gatekeeper(false, kKey);
    CHECK_FALSE(gatekeeper.may_send_body());
    CHECK(gatekeeper.admit({{"GET", target, ""}, to_hex(kNonce), to_hex(kNonce), to_hex(sha256(""))}) ==
          Verdict::kRefuse);
    CHECK(gatekeeper.is_stranger());
  }
  Gatekeeper gatekeeper(false, kKey);
  CHECK(gatekeeper.admit({{"POST", kSessionTarget, ""}, to_hex(kNonce), "", ""}) == Verdict::kRefuse);
  CHECK(gatekeeper.admit({{"GET", kSessionTarget, ""}, "", "", ""}) == Verdict::kRefuse);
  CHECK(gatekeeper.admit({{"GET", kSessionTarget, ""}, to_hex(kNonce).substr(2), "", ""}) == Verdict::kRefuse);
}

TEST_CASE("who signs with the key is a member, and each request has to be signed", "[unit]") {
  Gatekeeper gatekeeper(false, kKey);
  ConnectionAuth client = greet(gatekeeper);
  CHECK(gatekeeper.sign({200, "", {}}) == to_hex(client.answer({200, "", {}})));
  CHECK(gatekeeper.is_stranger());
  CHECK(gatekeeper.may_send_body());
  for (int i = 0; i < 3; ++i) {
    CHECK(gatekeeper.admit(signed_by(client, kPut)) == Verdict::kPass);
    CHECK_FALSE(gatekeeper.is_stranger());
    CHECK_FALSE(gatekeeper.admit_body("valuf"));
    CHECK(gatekeeper.admit_body("value"));
    CHECK(gatekeeper.sign({404, "a", "b"}) == to_hex(client.answer({404, "a", "b"})));
  }
  CHECK(gatekeeper.admit({kPut, "", "", ""}) == Verdict::kRefuse);
}

TEST_CASE("a peer that is vouched for and asks for a nonce has to sign too", "[unit]") {
  Gatekeeper gatekeeper(true, kKey);
  ConnectionAuth client = greet(gatekeeper);
  Gatekeeper::Head head = signed_by(client, kPut);
  CHECK(gatekeeper.admit(head) == Verdict::kPass);
  CHECK(gatekeeper.admit({kPut, "", "", ""}) == Verdict::kRefuse);
}

TEST_CASE("a nonce is given once on a connection, and another one on the next", "[unit]") {
  Gatekeeper first(false, kKey), second(false, kKey);
  greet(first);
  greet(second);
  CHECK(first.nonce() != second.nonce());
  CHECK(first.admit(ask_for_nonce()) == Verdict::kRefuse);
}

TEST_CASE("forged, repeated, reordered and foreign requests are refused", "[unit]") {
  const auto check_refused = [](auto spoil) {
    Gatekeeper gatekeeper(false, kKey);
    ConnectionAuth client = greet(gatekeeper);
    Gatekeeper::Head head = signed_by(client, kPut);
    spoil(head, client);
    CHECK(gatekeeper.admit(head) == Verdict::kRefuse);
    CHECK(gatekeeper.is_stranger());
  };
  using Head = Gatekeeper::Head;
  check_refused([](Head& head, ConnectionAuth&) { head.request.method = "DELETE"; });
  check_refused([](Head& head, ConnectionAuth&) { head.request.target += "2"; });
  check_refused([](Head& head, ConnectionAuth&) { head.request.process = 2; });
  check_refused([](Head& head, ConnectionAuth&) { head.request.process = -1; });
  check_refused([](Head& head, ConnectionAuth&) { head.digest = to_hex(sha256("other")); });
  check_refused([](Head& head, ConnectionAuth&) { head.digest.clear(); });
  check_refused([](Head& head, ConnectionAuth&) { head.mac.back() = head.mac.back() == '0' ? '1' : '0'; });
  check_refused([](Head& head, ConnectionAuth&) { head.mac.pop_back(); });
  check_refused([](Head& head, ConnectionAuth&) { head.mac.clear(); });
  check_refused([](Head& head, ConnectionAuth& client) { head = signed_by(client, kPut); });  // the second comes first

  Gatekeeper gatekeeper(false, kKey), other(false, kKey), wrong(false, kKey);
  ConnectionAuth client = greet(gatekeeper);
  const Gatekeeper::Head head = signed_by(client, kPut);
  CHECK(gatekeeper.admit(head) == Verdict::kPass);
  CHECK(gatekeeper.admit(head) == Verdict::kRefuse);  // repeated
  greet(other);
  CHECK(other.admit(head) == Verdict::kRefuse);  // repeated on another connection
  ConnectionAuth intruder = greet(wrong, JobKey::random());
  CHECK(wrong.admit(signed_by(intruder, kPut)) == Verdict::kRefuse);
}
