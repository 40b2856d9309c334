#include "sealed/aead.hpp"

#include <sodium/crypto_aead_chacha20poly1305.h>

#include "rendezvous/libsodium.hpp"

namespace runjob {
namespace {

using Nonce = std::array<unsigned char, crypto_aead_chacha20poly1305_IETF_NPUBBYTES>;

Nonce nonce_of(std::uint64_t counter) {
  rendezvous::prepare_libsodium();  // its implementation for this processor is six times as fast as the portable one
  Nonce nonce{};
  for (std::size_t i = 4; i < nonce.size(); ++i, counter >>= 8) nonce[i] = static_cast<unsigned char>(counter);
  return nonce;
}

const unsigned char* data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

void seal(const std::array<unsigned char, 32>& key, std::uint64_t counter, std::string_view associated,
          std::string_view plain, std::string& out) {
  const std::size_t begin = out.size();
  out.resize(begin + plain.size() + kSealBytes);
  auto* target = reinterpret_cast<unsigned char*>(out.data() + begin);
  ::crypto_aead_chacha20poly1305_ietf_encrypt(target, nullptr, data(plain), plain.size(), data(associated),
                                              associated.size(), nullptr, nonce_of(counter).data(), key.data());
}

bool open(const std::array<unsigned char, 32>& key, std::uint64_t counter, std::string_view associated,
          std::string_view sealed, std::string& out) {
  if (sealed.size() < kSealBytes) return false;
  const std::size_t begin = out.size();
  out.resize(begin + sealed.size() - kSealBytes);
  auto* target = reinterpret_cast<unsigned char*>(out.data() + begin);
  const int failed = ::crypto_aead_chacha20poly1305_ietf_decrypt(target, nullptr, nullptr, data(sealed), sealed.size(),
                                                                 data(associated), associated.size(),
                                                                 nonce_of(counter).data(), key.data());
  if (failed != 0) out.resize(begin);
  return failed == 0;
}

}  // namespace runjob
