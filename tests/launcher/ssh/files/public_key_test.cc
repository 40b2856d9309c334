#include "launcher/ssh/files/public_key.hpp"

#include "launcher/ssh/files/ssh_data.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

constexpr const char* kText = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVLv1EsahSYemSBHoRA/lJ9fOtuqaukjRyjHhovWxj5";

PublicKey key_of(std::string_view type) {
  PublicKey key;
  append_string(key.blob, type);
  return key;
}

}  // namespace

TEST_CASE("a public key is read from its text, with or without a comment, and written again", "[unit]") {
  const auto key = parse_public_key(std::string(kText) + " me@here and more\n");
  REQUIRE(key);
  CHECK(key->type() == "ssh-ed25519");
  CHECK(key->short_type() == "ED25519");
  CHECK(to_text(*key) == kText);
  CHECK(parse_public_key(kText) == key);
}

TEST_CASE("a fingerprint is what ssh-keygen -l shows", "[unit]") {
  const auto key = parse_public_key(kText);
  REQUIRE(key);
  CHECK(key->fingerprint() == "SHA256:R2x9pRZ+tq3uGnYF6wZCp+qDQixsiZhbV2RLfRXqHcc");
}

TEST_CASE("types have the names that ssh gives them", "[unit]") {
  CHECK(key_of("ssh-rsa").short_type() == "RSA");
  CHECK(key_of("ssh-dss").short_type() == "DSA");
  CHECK(key_of("ecdsa-sha2-nistp521").short_type() == "ECDSA");
  CHECK(key_of("sk-ssh-ed25519@openssh.com").short_type() == "ED25519-SK");
  CHECK(key_of("sk-ecdsa-sha2-nistp256@openssh.com").short_type() == "ECDSA-SK");
  CHECK(key_of("new@example.org").short_type() == "new@example.org");
  CHECK(PublicKey{"\xff\xff\xff\xff"}.short_type().empty());
}

TEST_CASE("text that is no key is not one", "[unit]") {
  for (const char* text : {"", "ssh-ed25519", "ssh-ed25519 !!!!", "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIF2RVAgt",
                           "-----BEGIN OPENSSH PRIVATE KEY-----"}) {
    INFO(text);
    CHECK_FALSE(parse_public_key(text));
  }
}
