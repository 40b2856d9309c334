#include "rendezvous/auth.hpp"

#include <sodium/crypto_hash_sha256.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>

#include "rendezvous/hmac.hpp"
#include "rendezvous/libsodium.hpp"

namespace runjob::rendezvous {
namespace {

const unsigned char* data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Nonce random_nonce() {
  prepare_libsodium();
  Nonce nonce;
  ::randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Digest sha256(std::string_view bytes) {
  prepare_libsodium();
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
  std::string result = text.data();
  ::sodium_memzero(text.data(), text.size());  // it may be a key
  return result;
}

bool read_hex(std::string_view text, std::array<unsigned char, 32>& bytes) {
  prepare_libsodium();
  std::size_t length = 0;
  return text.size() == 2 * bytes.size() &&
         ::sodium_hex2bin(bytes.data(), bytes.size(), text.data(), text.size(), nullptr, &length, nullptr) == 0 &&
         length == bytes.size();
}

std::optional<std::array<unsigned char, 32>> from_hex(std::string_view text) {
  std::array<unsigned char, 32> bytes{};
  if (!read_hex(text, bytes)) return std::nullopt;
  return bytes;
}

ConnectionAuth::ConnectionAuth(const JobKey& key, const Nonce& client, const Nonce& server)
    : key_(Hmac(key.bytes(), "runjob http 1: key of a connection").add(client).add(server).secret()) {}

Mac ConnectionAuth::next_request(const Request& request, const Digest& body) {
  last_request_ = Hmac(key_, "request")
                      .number(++requests_)
                      .number(static_cast<std::uint64_t>(static_cast<std::int64_t>(request.process)))
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
