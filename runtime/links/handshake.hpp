#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rendezvous/auth.hpp"

/// How both ends of a new connection prove that they belong to one mesh, before anything else travels on it. Pure.
///
///   connecting member  Hello   who connects to whom, nonce c
///   listening member   Answer  nonce s, HMAC(key, "answer", Hello, s)
///   connecting member  Proof   HMAC(key, "proof", Hello, s)
///   listening member   Welcome one byte: the connection is taken
///
/// Both nonces are in both MACs, so that nothing of another connection is worth anything on this one. The direction
/// and the pair are in them, so that a message cannot be sent back or to another member. The key never travels.
namespace runjob::runtime {

/// The secret of the members that connect to each other.
using LinkKey = rendezvous::Mac;

/// Makes the key from the job's key and from the nonces of all listening members, by member. Where the nonces travel in
/// secret (a Unix socket, SSH), they alone keep it, and `job_key` may be zeros. Where they do not (HTTP), the job's
/// key does. `purpose` separates the keys of different connections.
LinkKey make_link_key(const rendezvous::Mac& job_key, std::string_view purpose,
                      const std::vector<rendezvous::Nonce>& nonces);

struct LinkHello {
  std::uint32_t magic = 0x524a4431;  // "RJD1": runjob data, version 1
  std::int32_t from = 0, to = 0;     ///< members: the one that connects, and the one that listens
  rendezvous::Nonce nonce{};
};

struct LinkAnswer {
  rendezvous::Nonce nonce{};
  rendezvous::Mac mac{};
};

struct LinkProof {
  rendezvous::Mac mac{};
};

inline constexpr char kLinkWelcome = 'W';

LinkHello make_hello(int from, int to);
LinkAnswer make_answer(const LinkKey& key, const LinkHello& hello);
LinkProof make_proof(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer);

/// True if the sender of `answer` holds the key and answers this hello.
bool is_genuine(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer);
/// True if the sender of `proof` holds the key and has read this answer.
bool is_genuine(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer, const LinkProof& proof);

}  // namespace runjob::runtime
