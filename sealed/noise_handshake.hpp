#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/secrets/secret.hpp"
#include "rendezvous/job_key.hpp"
#include "sealed/key_exchange.hpp"

namespace runjob {

using SealKey = Secret;

/// The keys of a connection, one for each direction.
struct SealKeys {
  SealKey sending;
  SealKey receiving;
};

/// A handshake by which two processes that share a job's key agree on the keys of one connection and prove to each
/// other that they have the job's key. The initiator sends one message and the responder one, each with a payload that
/// only the other can read. The connection's keys also come from a fresh Diffie-Hellman exchange. An eavesdropper
/// therefore cannot decrypt the connection, even with the job's key, learned later or on its way through srun. The
/// responder knows that the initiator is live, and not a recording, when it has opened the first sealed bytes.
/// Threads  one. Pure, except for the random ephemeral key.
/// Source   T. Perrin, "The Noise Protocol Framework", revision 34: Noise_NNpsk0_25519_ChaChaPoly_SHA256.
class NoiseHandshake {
 public:
  enum class Role { kInitiator, kResponder };

  static constexpr std::size_t kOverheadBytes = 32 + 16;  ///< bytes of each message in addition to its payload

  /// `prologue` names the protocol and must be equal on both sides. Only tests set `ephemeral`.
  NoiseHandshake(Role role, const rendezvous::JobKey& key, std::string_view prologue,
                 const std::optional<Secret>& ephemeral = std::nullopt);
  NoiseHandshake(const NoiseHandshake&) = delete;
  NoiseHandshake& operator=(const NoiseHandshake&) = delete;

  /// The initiator writes, then reads; the responder reads, then writes. Each is called once.
  std::string write(std::string_view payload);
  /// The payload; nullopt if the other side does not have the key, or if this is not such a message.
  std::optional<std::string> read(std::string_view message);

  /// The keys, after both messages.
  SealKeys finish() const;

 private:
  void mix_hash(std::string_view bytes);
  void mix_key(std::string_view material);
  void mix_key_and_hash(std::string_view material);
  void mix_public(std::string_view bytes);

  const Role role_;
  Secret chaining_key_;
  std::array<unsigned char, 32> hash_{};
  SealKey key_;
  const KeyExchange exchange_;
  Secret shared_secret_;  // set once the other side's message has been read
};

}  // namespace runjob
