#include "sealed/noise_handshake.hpp"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_hash_sha256.h>
#include <sodium/crypto_scalarmult.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>

#include "rendezvous/libsodium.hpp"
#include "sealed/aead.hpp"

namespace runjob {
namespace {

using Bytes32 = std::array<unsigned char, 32>;

constexpr std::string_view kProtocol = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";

std::string_view view(const Bytes32& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const unsigned char* unsigned_data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Bytes32 sha256(std::string_view first, std::string_view second) {
  crypto_hash_sha256_state state;
  ::crypto_hash_sha256_init(&state);
  ::crypto_hash_sha256_update(&state, unsigned_data(first), first.size());
  ::crypto_hash_sha256_update(&state, unsigned_data(second), second.size());
  Bytes32 hash;
  ::crypto_hash_sha256_final(&state, hash.data());
  return hash;
}

Secret hmac(const Bytes32& key, std::string_view first, std::string_view second) {
  crypto_auth_hmacsha256_state state;
  ::crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  ::crypto_auth_hmacsha256_update(&state, unsigned_data(first), first.size());
  ::crypto_auth_hmacsha256_update(&state, unsigned_data(second), second.size());
  Secret mac;
  ::crypto_auth_hmacsha256_final(&state, mac.bytes().data());
  ::sodium_memzero(&state, sizeof state);
  return mac;
}

/// Section 4.3's HKDF: three keys from a chaining key and any material.
std::array<Secret, 3> derive(const Bytes32& chaining_key, std::string_view material) {
  const Secret extracted = hmac(chaining_key, material, "");
  std::array<Secret, 3> keys;
  keys[0] = hmac(extracted, "\x01", "");
  keys[1] = hmac(extracted, view(keys[0]), "\x02");
  keys[2] = hmac(extracted, view(keys[1]), "\x03");
  return keys;
}

}  // namespace

NoiseHandshake::NoiseHandshake(Role role, const rendezvous::JobKey& key, std::string_view prologue,
                               const std::optional<Secret>& ephemeral)
    : role_(role) {
  rendezvous::prepare_libsodium();
  hash_ = sha256(kProtocol, "");  // the name is longer than a hash
  chaining_key_ = hash_;
  mix_hash(prologue);
  mix_key_and_hash(view(key.bytes()));
  if (ephemeral) {
    own_secret_ = *ephemeral;
  } else {
    ::randombytes_buf(own_secret_.bytes().data(), own_secret_.bytes().size());
  }
  ::crypto_scalarmult_base(own_public_.data(), own_secret_.bytes().data());
}

std::string NoiseHandshake::write(std::string_view payload) {
  std::string message(view(own_public_));
  mix_public(message);
  if (role_ == Role::kResponder) mix_key(view(shared_secret_));
  const std::size_t begin = message.size();
  seal(key_, 0, view(hash_), payload, message);
  mix_hash(std::string_view(message).substr(begin));
  return message;
}

std::optional<std::string> NoiseHandshake::read(std::string_view message) {
  if (message.size() < kOverheadBytes) return std::nullopt;
  const std::string_view their_public = message.substr(0, own_public_.size());
  const std::string_view sealed = message.substr(own_public_.size());
  // Fails for a public key that would make the secret zero whatever ours is.
  if (::crypto_scalarmult(shared_secret_.bytes().data(), own_secret_.bytes().data(), unsigned_data(their_public)) != 0)
    return std::nullopt;
  mix_public(their_public);
  if (role_ == Role::kInitiator) mix_key(view(shared_secret_));
  std::string payload;
  if (!open(key_, 0, view(hash_), sealed, payload)) return std::nullopt;
  mix_hash(sealed);
  return payload;
}

SealKeys NoiseHandshake::finish() const {
  const auto keys = derive(chaining_key_, "");
  if (role_ == Role::kInitiator) return {keys[0], keys[1]};
  return {keys[1], keys[0]};
}

void NoiseHandshake::mix_hash(std::string_view bytes) {
  hash_ = sha256(view(hash_), bytes);
}

void NoiseHandshake::mix_key(std::string_view material) {
  const auto keys = derive(chaining_key_, material);
  chaining_key_ = keys[0];
  key_ = keys[1];
}

void NoiseHandshake::mix_key_and_hash(std::string_view material) {
  const auto keys = derive(chaining_key_, material);
  chaining_key_ = keys[0];
  mix_hash(view(keys[1]));
  key_ = keys[2];
}

/// Section 9.2: with a pre-shared key, an ephemeral public key is mixed into the key too.
void NoiseHandshake::mix_public(std::string_view bytes) {
  mix_hash(bytes);
  mix_key(bytes);
}

}  // namespace runjob
