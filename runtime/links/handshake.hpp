#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/secrets/secret.hpp"
#include "rendezvous/auth.hpp"
#include "sealed/key_exchange.hpp"
#include "sealed/noise_handshake.hpp"

/// How both ends of a new connection prove that they belong to one mesh, before anything else travels on it. Pure.
///
///   connecting member  Hello   who connects to whom, nonce c, whether it encrypts, public key
///   listening member   Answer  nonce s, whether it encrypts, public key, HMAC(key, "answer", Hello, all before)
///   connecting member  Proof   HMAC(key, "proof", Hello, Answer without its HMAC)
///   listening member   Welcome one byte: the connection is taken
///
/// Both nonces are in both MACs, so that nothing of another connection is worth anything on this one. The direction
/// and the pair are in them, so that a message cannot be sent back or to another member. The key never travels.
/// Members of which only one encrypts learn it from each other's MACs, so that nobody on the network can talk them out
/// of it. The keys by which members encrypt also come from a Diffie-Hellman exchange between the two: somebody who has
/// recorded the connection and learns the members' key later, from a core dump for instance, cannot read it.
namespace runjob::runtime {

/// The secret of the members that connect to each other.
using LinkKey = Secret;

/// Makes the key from the job's key and from the nonces of all listening members, by member. Where the nonces travel in
/// secret (a Unix socket, SSH), they alone keep it, and `job_key` may be zeros. Where they do not (HTTP), the job's
/// key does. `purpose` separates the keys of different connections.
LinkKey make_link_key(const Secret& job_key, std::string_view purpose, const std::vector<rendezvous::Nonce>& nonces);

struct LinkHello {
  std::uint32_t magic = 0x524a4433;  // "RJD3": runjob data, version 3
  std::int32_t from = 0, to = 0;     ///< members: the one that connects, and the one that listens
  std::uint32_t encrypts = 0;        ///< 1: this member seals everything after the handshake
  rendezvous::Nonce nonce{};
  KeyExchange::PublicKey key{};  ///< zeros from a member that does not encrypt
};

struct LinkAnswer {
  rendezvous::Nonce nonce{};
  std::uint32_t encrypts = 0;
  KeyExchange::PublicKey key{};  ///< as in LinkHello
  rendezvous::Mac mac{};
};

struct LinkProof {
  rendezvous::Mac mac{};
};

inline constexpr char kLinkWelcome = 'W';

/// `exchange`: this member's part of the key exchange; null if it does not encrypt.
LinkHello make_hello(int from, int to, const KeyExchange* exchange = nullptr);
LinkAnswer make_answer(const LinkKey& key, const LinkHello& hello, const KeyExchange* exchange = nullptr);
LinkProof make_proof(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer);

/// True if the sender of `answer` holds the key and answers this hello.
bool is_genuine(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer);
/// True if the sender of `proof` holds the key and has read this answer.
bool is_genuine(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer, const LinkProof& proof);

/// The keys of a link whose handshake has succeeded, one for each direction. Nobody without `key` and the secret of
/// one of the two exchanges can make them, and no other link has them. `exchange`: that of this member.
/// nullopt when the other member's public key leads to no secret (KeyExchange::shared_secret()).
std::optional<SealKeys> make_seal_keys(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer,
                                       bool is_connecting, const KeyExchange& exchange);

}  // namespace runjob::runtime
