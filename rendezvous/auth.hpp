#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/job_key.hpp"
#include "rendezvous/protocol.hpp"

/// The proof of both ends of an HTTP connection that they hold the job's key. rendezvous.md describes it
/// for readers of the wire.
///
///   client  GET /v1/session      Runjob-Nonce: c                 the first request of a connection
///   server  200                  Runjob-Nonce: s, Runjob-Mac
///   client  any request          Runjob-Mac, Runjob-Digest       again and again
///   server  its answer           Runjob-Mac
///
/// Both derive the connection's key from the job's key and the two nonces, so a signature of one connection is not
/// valid on another. Requests are counted and each answer names its request, so that none can be repeated, left out or
/// exchanged for another. A request carries its body's digest, so the server knows the sender before it reads a body.
/// The protocol needs no clocks.
///
/// SHA-256 (FIPS 180-4), HMAC-SHA256 (RFC 2104); all values are 32 bytes, in lower-case hexadecimal on the
/// wire.
namespace runjob::rendezvous {

inline constexpr char kNonceHeader[] = "Runjob-Nonce";
inline constexpr char kMacHeader[] = "Runjob-Mac";
inline constexpr char kDigestHeader[] = "Runjob-Digest";
inline constexpr char kSessionTarget[] = "/v1/session";

using AuthHeaders = std::vector<std::pair<const char*, std::string>>;

using Nonce = std::array<unsigned char, 32>;
using Mac = std::array<unsigned char, 32>;

Nonce random_nonce();
Digest sha256(std::string_view bytes);

/// Compares in a time that does not depend on the bytes.
bool equal(const Mac& a, const Mac& b);

std::string to_hex(const std::array<unsigned char, 32>& bytes);
/// Exactly 64 digits of either case; nullopt for anything else.
std::optional<std::array<unsigned char, 32>> from_hex(std::string_view text);
/// The same, in place, for secrets. False leaves anything in `bytes`.
bool read_hex(std::string_view text, std::array<unsigned char, 32>& bytes);

/// The MACs of one connection, the same on both ends, in the order of its messages.
/// Threads  a value, one at a time.
class ConnectionAuth {
 public:
  ConnectionAuth(const JobKey& key, const Nonce& client, const Nonce& server);

  /// The MAC of the connection's next request, of which `request` has all but the body.
  Mac next_request(const Request& request, const Digest& body);

  /// The MAC of the answer to the last request; before the first one, of the answer with the server's nonce.
  Mac answer(const Response& response) const;

 private:
  Secret key_;
  std::uint64_t requests_ = 0;
  Mac last_request_{};
};

}  // namespace runjob::rendezvous
