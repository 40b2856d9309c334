#include "sealed/key_exchange.hpp"

#include <sodium/crypto_scalarmult.h>
#include <sodium/randombytes.h>
#include <utility>

#include "rendezvous/libsodium.hpp"

namespace runjob {
namespace {

Secret random_secret() {
  rendezvous::prepare_libsodium();
  Secret secret;
  ::randombytes_buf(secret.bytes().data(), secret.bytes().size());
  return secret;
}

}  // namespace

KeyExchange::KeyExchange() : KeyExchange(random_secret()) {}

KeyExchange::KeyExchange(Secret secret) : secret_(std::move(secret)) {
  rendezvous::prepare_libsodium();
  ::crypto_scalarmult_base(public_.data(), secret_.bytes().data());
}

std::optional<Secret> KeyExchange::shared_secret(const PublicKey& theirs) const {
  Secret shared;
  if (::crypto_scalarmult(shared.bytes().data(), secret_.bytes().data(), theirs.data()) != 0) return std::nullopt;
  return shared;
}

}  // namespace runjob
