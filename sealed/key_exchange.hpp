#pragma once

#include <array>
#include <optional>

#include "base/secrets/secret.hpp"

namespace runjob {

/// One side of a Diffie-Hellman exchange: a random secret that is wiped with the object, and the public key that goes
/// with it. Whoever records both public keys learns nothing of the secret that both sides then share.
/// Threads  any, one at a time.
/// Source   X25519 (RFC 7748), by libsodium.
class KeyExchange {
 public:
  using PublicKey = std::array<unsigned char, 32>;

  KeyExchange();                        ///< a random secret
  explicit KeyExchange(Secret secret);  ///< for tests

  const PublicKey& public_key() const { return public_; }
  /// The secret that the owner of `theirs` computes from public_key(). nullopt for a public key with which it would be
  /// zero whatever the own secret is.
  std::optional<Secret> shared_secret(const PublicKey& theirs) const;

 private:
  Secret secret_;
  PublicKey public_{};
};

}  // namespace runjob
