#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/job_key.hpp"

namespace runjob {

using SealKey = std::array<unsigned char, 32>;

/// One key for each direction of a connection.
struct SealKeys {
  SealKey sending;
  SealKey receiving;
};

/// How two processes that share a job's key agree on the keys of one connection, and prove to each other that they hold it:
/// one message of the initiator, one of the responder, each with a payload that only the other one can read. The
/// connection's keys come from a fresh Diffie-Hellman exchange as well, so who learns the job's key later, or overhears it
/// on its way through srun, still cannot read along. The responder knows that the initiator is there, and not a recording of
/// it, when it has opened the first sealed bytes.
/// Pure but for the random ephemeral key. Threads  one.
/// Source   T. Perrin, "The Noise Protocol Framework", revision 34: Noise_NNpsk0_25519_ChaChaPoly_SHA256.
class NoiseHandshake {
 public:
  enum class Role { kInitiator, kResponder };
  using Secret = std::array<unsigned char, 32>;

  static constexpr std::size_t kOverheadBytes = 32 + 16;  ///< of each message over its payload

  /// `prologue`: both sides must mean the same protocol. `ephemeral`: fixed by tests only.
  NoiseHandshake(Role role, const rendezvous::JobKey& key, std::string_view prologue,
                 const std::optional<Secret>& ephemeral = std::nullopt);
  ~NoiseHandshake();
  NoiseHandshake(const NoiseHandshake&) = delete;
  NoiseHandshake& operator=(const NoiseHandshake&) = delete;

  /// The initiator writes, then reads; the responder reads, then writes. Each once.
  std::string write(std::string_view payload);
  /// The payload; nullopt when the other side does not hold the key, or this is no such message.
  std::optional<std::string> read(std::string_view message);

  /// After both.
  SealKeys finish() const;

 private:
  void mix_hash(std::string_view bytes);
  void mix_key(std::string_view material);
  void mix_key_and_hash(std::string_view material);
  void mix_public(std::string_view bytes);

  const Role role_;
  std::array<unsigned char, 32> chaining_key_{};
  std::array<unsigned char, 32> hash_{};
  SealKey key_{};
  Secret own_secret_{};
  std::array<unsigned char, 32> own_public_{};
  Secret shared_secret_{};  // once the other side's message has been read
};

}  // namespace runjob
