#include "rendezvous/auth.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace runjob::rendezvous;

namespace {

std::array<unsigned char, 32> filled(unsigned char byte) {
  std::array<unsigned char, 32> bytes;
  bytes.fill(byte);
  return bytes;
}

const JobKey kKey = JobKey::from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");

ConnectionAuth connection() {
  return {kKey, filled(1), filled(2)};
}

}  // namespace

TEST_CASE("SHA-256 is that of the standard", "[unit]") {
  CHECK(to_hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(to_hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(to_hex(sha256(std::string(1000000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("hexadecimal values are taken whole or not at all", "[unit]") {
  const std::string text = "00ff" + std::string(60, 'a');
  CHECK(to_hex(from_hex(text).value()) == text);
  CHECK(from_hex("00FF" + std::string(60, 'A')) == from_hex(text));
  for (const std::string& bad :
       {std::string(), text.substr(1), text + "0", " " + text.substr(1), text.substr(1) + " ", "0x" + text.substr(2),
        text.substr(1) + "g", text.substr(1) + std::string(1, '\0'), "00:ff" + std::string(59, 'a')}) {
    INFO(bad);
    CHECK_FALSE(from_hex(bad));
  }
}

TEST_CASE("equality looks at every byte", "[unit]") {
  const Mac mac = filled(7);
  CHECK(equal(mac, filled(7)));
  for (std::size_t i = 0; i < mac.size(); ++i) {
    Mac other = mac;
    other[i] ^= 0x80;
    CHECK_FALSE(equal(mac, other));
  }
}

// Computed with Python's hmac and hashlib from the description in docs/developers/rendezvous.md.
TEST_CASE("the MACs of a connection are those that the page describes", "[unit]") {
  ConnectionAuth auth = connection();
  const Response empty{200, "", {}};
  CHECK(to_hex(auth.answer(empty)) == "aa082b8a7cbb1c8d2f37b645fe9c8227eb65fe74bd8c3a42b27ffa63d43753cf");
  CHECK(to_hex(auth.next_request({"PUT", "/v1/kv/s/k", "", 3}, sha256("value"))) ==
        "b9b1f4ec40ead8169b53716c16507432e92e9be2e1d3b423383ed23743805c84");
  CHECK(to_hex(auth.answer(empty)) == "8e4bc01db3f10c7ed9132b87c4da13dd609f757bac60255bec1255422726d64b");
  CHECK(to_hex(auth.next_request({"GET", "/v1/status", "", -1}, sha256(""))) ==
        "07d4320ba66b2b0b1b378e3cddfc204839147f6e8f0bf60f8c191b0e25458f1d");
  CHECK(to_hex(auth.answer({404, "application/json", "{}"})) ==
        "b8f5de4444ba6d24d57d23b2333a0b30432a1ea713443d1e15f32305c2c1bdb1");
}

TEST_CASE("everything about a request and its place is in its MAC", "[unit]") {
  const Request request{"PUT", "/v1/kv/s/k", "", 3};
  const Mac mac = connection().next_request(request, sha256("value"));
  CHECK(connection().next_request(request, sha256("value")) == mac);
  const std::vector<Request> others = {{"POST", "/v1/kv/s/k", "", 3},
                                       {"PUT", "/v1/kv/s/j", "", 3},
                                       {"PUT", "/v1/kv/s/k", "", 2},
                                       {"PUT", "/v1/kv/s/k", "", -1},
                                       {"PUT/", "v1/kv/s/k", "", 3}};  // the same text, cut elsewhere
  for (const Request& other : others) CHECK(connection().next_request(other, sha256("value")) != mac);
  CHECK(connection().next_request(request, sha256("value2")) != mac);
  CHECK(ConnectionAuth(JobKey::random(), filled(1), filled(2)).next_request(request, sha256("value")) != mac);
  CHECK(ConnectionAuth(kKey, filled(3), filled(2)).next_request(request, sha256("value")) != mac);
  CHECK(ConnectionAuth(kKey, filled(1), filled(3)).next_request(request, sha256("value")) != mac);
  CHECK(ConnectionAuth(kKey, filled(2), filled(1)).next_request(request, sha256("value")) != mac);
  ConnectionAuth later = connection();
  later.next_request(request, sha256("value"));
  CHECK(later.next_request(request, sha256("value")) != mac);
}

TEST_CASE("everything about an answer and its request is in its MAC", "[unit]") {
  const auto after = [](const Request& request) {
    ConnectionAuth auth = connection();
    auth.next_request(request, sha256(""));
    return auth;
  };
  const Request request{"GET", "/v1/status", "", 0};
  const Mac mac = after(request).answer({200, "text/plain", "x"});
  CHECK(after(request).answer({200, "text/plain", "x"}) == mac);
  CHECK(after(request).answer({404, "text/plain", "x"}) != mac);
  CHECK(after(request).answer({200, "text/plai", "nx"}) != mac);
  CHECK(after(request).answer({200, "text/plain", "y"}) != mac);
  CHECK(after({"GET", "/v1/statuses", "", 0}).answer({200, "text/plain", "x"}) != mac);
  CHECK(connection().answer({200, "text/plain", "x"}) != mac);
}

TEST_CASE("nonces do not repeat", "[unit]") {
  CHECK(random_nonce() != random_nonce());
}

TEST_CASE("copies of a body share its digest, and an empty one has that of nothing", "[unit]") {
  const Body body("abc");
  const Body copy = body;  // NOLINT: it is the copy that is tested
  CHECK(copy.digest() == sha256("abc"));
  CHECK(body.digest() == sha256("abc"));
  CHECK(Body().digest() == sha256(""));
  CHECK(Body("").digest() == sha256(""));
}
