#include "sealed/aead.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

using Key = std::array<unsigned char, 32>;

Key key_of(unsigned char first) {
  Key key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(first + i);
  return key;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace

// Computed with OpenSSL's ChaCha20-Poly1305, nonce 000000000807060504030201.
TEST_CASE("sealing is ChaCha20-Poly1305 with Noise's nonce", "[unit]") {
  std::string sealed;
  seal(key_of(0x80), 0x0102030405060708, "associated", "plain text", sealed);
  CHECK(hex(sealed) == "84dd8fd23efa2fb85bc5b561c25ad453ed2b06f3a57739e15a5f");
}

TEST_CASE("what was sealed can be opened, and nothing else", "[unit]") {
  const Key key = key_of(1);
  std::string sealed = "before";
  seal(key, 7, "a", "text", sealed);
  REQUIRE(sealed.size() == 6 + 4 + kSealBytes);
  const std::string record = sealed.substr(6);
  std::string plain = "kept ";
  CHECK(open(key, 7, "a", record, plain));
  CHECK(plain == "kept text");
  CHECK_FALSE(open(key, 8, "a", record, plain));
  CHECK_FALSE(open(key, 7, "b", record, plain));
  CHECK_FALSE(open(key_of(2), 7, "a", record, plain));
  CHECK_FALSE(open(key, 7, "a", record.substr(1), plain));
  CHECK_FALSE(open(key, 7, "a", "", plain));
  for (std::size_t i = 0; i < record.size(); ++i) {
    std::string changed = record;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK_FALSE(open(key, 7, "a", changed, plain));
  }
  CHECK(plain == "kept text");
}
