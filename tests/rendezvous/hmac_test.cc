#include "rendezvous/hmac.hpp"

#include "tests/catch.hpp"

using runjob::rendezvous::Hmac;

namespace {

Hmac::Bytes key_of(unsigned char byte) {
  Hmac::Bytes key{};
  key.fill(byte);
  return key;
}

}  // namespace

TEST_CASE("a MAC depends on the key, the purpose, each field and where each ends", "[rendezvous]") {
  const Hmac::Bytes key = key_of(1), mac = Hmac(key, "purpose").add("ab").add("c").number(7).result();
  CHECK(mac == Hmac(key, "purpose").add("ab").add("c").number(7).result());
  CHECK(mac != Hmac(key_of(2), "purpose").add("ab").add("c").number(7).result());
  CHECK(mac != Hmac(key, "another").add("ab").add("c").number(7).result());
  CHECK(mac != Hmac(key, "purpose").add("a").add("bc").number(7).result());
  CHECK(mac != Hmac(key, "purpose").add("ab").add("c").number(8).result());
  CHECK(mac != Hmac(key, "purpose").add("ab").add("c").result());
}

TEST_CASE("the MAC is HMAC-SHA256 of the fields, each after its length", "[rendezvous]") {
  const Hmac::Bytes key = key_of(3);
  const std::string text("\2\0\0\0\0\0\0\0ab\1\0\0\0\0\0\0\0c", 19);
  Hmac::Bytes expected;
  crypto_auth_hmacsha256_state state;
  ::crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  ::crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  ::crypto_auth_hmacsha256_final(&state, expected.data());
  CHECK(Hmac(key, "ab").add("c").result() == expected);
}

TEST_CASE("the digest of a field is BLAKE2b's", "[rendezvous]") {
  const Hmac::Bytes key = key_of(3);
  // BLAKE2b of "abc" with 32 bytes, as `b2sum -l 256` prints it.
  const Hmac::Bytes digest = {0xbd, 0xdd, 0x81, 0x3c, 0x63, 0x42, 0x39, 0x72, 0x31, 0x71, 0xef,
                              0x3f, 0xee, 0x98, 0x57, 0x9b, 0x94, 0x96, 0x4e, 0x3b, 0xb1, 0xcb,
                              0x3e, 0x42, 0x72, 0x62, 0xc8, 0xc0, 0x68, 0xd5, 0x23, 0x19};
  CHECK(Hmac(key, "a").add_digest("abc").result() == Hmac(key, "a").add(digest).result());
  CHECK(Hmac(key, "a").add_digest("abc").result() != Hmac(key, "a").add_digest("abd").result());
}
