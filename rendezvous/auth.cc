#include "rendezvous/auth.hpp"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_hash_sha256.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>

namespace runjob::rendezvous {
namespace {

const unsigned char* data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// HMAC-SHA256 over fields of any length, each with its length before it, so that no two lists of fields are
/// one text.
class Hmac {
 public:
  Hmac(const std::array<unsigned char, 32>& key, std::string_view purpose) {
    ::crypto_auth_hmacsha256_init(&state_, key.data(), key.size());
    add(purpose);
  }

  Hmac& add(std::string_view field) {
    number(field.size());
    ::crypto_auth_hmacsha256_update(&state_, data(field), field.size());
    return *this;
  }
  Hmac& add(const std::array<unsigned char, 32>& field) {
    return add(std::string_view(reinterpret_cast<const char*>(field.data()), field.size()));
  }
  Hmac& number(std::uint64_t value) {
    std::array<unsigned char, 8> bytes{};
    for (unsigned char& byte : bytes) {
      byte = static_cast<unsigned char>(value);
      value >>= 8;
    }
    ::crypto_auth_hmacsha256_update(&state_, bytes.data(), bytes.size());
    return *this;
  }

  Mac result() {
    Mac mac;
    ::crypto_auth_hmacsha256_final(&state_, mac.data());
    return mac;
  }

 private:
  crypto_auth_hmacsha256_state state_;
};

}  // namespace

Nonce random_nonce() {
  Nonce nonce;
  ::randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Digest sha256(std::string_view bytes) {
  Digest digest;
  ::crypto_hash_sha256(digest.data(), data(bytes), bytes.size());
  return digest;
}

bool equal(const Mac& a, const Mac& b) {
  return ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(const std::array<unsigned char, 32>& bytes) {
  std::array<char, 2 * 32 + 1> text{};
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  return text.data();
}

std::optional<std::array<unsigned char, 32>> from_hex(std::string_view text) {
  std::array<unsigned char, 32> bytes{};
  std::size_t length = 0;
  if (text.size() != 2 * bytes.size() ||
      ::sodium_hex2bin(bytes.data(), bytes.size(), text.data(), text.size(), nullptr, &length, nullptr) != 0 ||
      length != bytes.size())
    return std::nullopt;
  return bytes;
}

ConnectionAuth::ConnectionAuth(const JobKey& key, const Nonce& client, const Nonce& server)
    : key_(Hmac(key.bytes(), "runjob http 1: key of a connection").add(client).add(server).result()) {}

Mac ConnectionAuth::next_request(const Request& request, const Digest& body) {
  last_request_ = Hmac(key_, "request")
                      .number(++requests_)
                      .number(static_cast<std::uint64_t>(static_cast<std::int64_t>(request.rank)))
                      .add(request.method)
                      .add(request.target)
                      .add(body)
                      .result();
  return last_request_;
}

Mac ConnectionAuth::answer(const Response& response) const {
  return Hmac(key_, "answer")
      .number(requests_)
      .add(last_request_)
      .number(static_cast<std::uint64_t>(response.status))
      .add(response.content_type)
      .add(response.body.digest())
      .result();
}

}  // namespace runjob::rendezvous
