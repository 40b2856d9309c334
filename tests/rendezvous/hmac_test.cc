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
