#include "runtime/links/handshake.hpp"

#include <utility>

#include "rendezvous/hmac.hpp"

namespace runjob::runtime {
namespace {

/// Adds what both members have sent in the handshake.
rendezvous::Hmac& add_handshake(rendezvous::Hmac& mac, const LinkHello& hello, const LinkAnswer& answer) {
  return mac.number(hello.magic)
      .number(static_cast<std::uint32_t>(hello.from))
      .number(static_cast<std::uint32_t>(hello.to))
      .number(hello.encrypts)
      .add(hello.nonce)
      .add(hello.key)
      .number(answer.encrypts)
      .add(answer.nonce)
      .add(answer.key);
}

rendezvous::Mac mac_of(const LinkKey& key, std::string_view purpose, const LinkHello& hello, const LinkAnswer& answer) {
  rendezvous::Hmac mac(key, purpose);
  return add_handshake(mac, hello, answer).result();
}

SealKey seal_key_of(const LinkKey& key, std::string_view purpose, const LinkHello& hello, const LinkAnswer& answer,
                    const Secret& shared) {
  rendezvous::Hmac mac(key, purpose);
  return add_handshake(mac, hello, answer).add(shared).secret();
}

constexpr std::string_view kAnswerPurpose = "runjob data 3: answer", kProofPurpose = "runjob data 3: proof",
                           kToListenerPurpose = "runjob data 3: sealed for the listening member",
                           kToConnectingPurpose = "runjob data 3: sealed for the connecting member";

}  // namespace

LinkKey make_link_key(const Secret& job_key, std::string_view purpose, const std::vector<rendezvous::Nonce>& nonces) {
  rendezvous::Hmac key(job_key, purpose);
  for (const rendezvous::Nonce& nonce : nonces) key.add(nonce);
  return key.secret();
}

LinkHello make_hello(int from, int to, const KeyExchange* exchange) {
  LinkHello hello;
  hello.from = from;
  hello.to = to;
  hello.nonce = rendezvous::random_nonce();
  if (exchange != nullptr) {
    hello.encrypts = 1;
    hello.key = exchange->public_key();
  }
  return hello;
}

LinkAnswer make_answer(const LinkKey& key, const LinkHello& hello, const KeyExchange* exchange) {
  LinkAnswer answer;
  answer.nonce = rendezvous::random_nonce();
  if (exchange != nullptr) {
    answer.encrypts = 1;
    answer.key = exchange->public_key();
  }
  answer.mac = mac_of(key, kAnswerPurpose, hello, answer);
  return answer;
}

LinkProof make_proof(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer) {
  return {mac_of(key, kProofPurpose, hello, answer)};
}

bool is_genuine(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer) {
  return rendezvous::equal(answer.mac, mac_of(key, kAnswerPurpose, hello, answer));
}

bool is_genuine(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer, const LinkProof& proof) {
  return rendezvous::equal(proof.mac, mac_of(key, kProofPurpose, hello, answer));
}

std::optional<SealKeys> make_seal_keys(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer,
                                       bool is_connecting, const KeyExchange& exchange) {
  const std::optional<Secret> shared = exchange.shared_secret(is_connecting ? answer.key : hello.key);
  if (!shared) return std::nullopt;
  SealKey to_listener = seal_key_of(key, kToListenerPurpose, hello, answer, *shared),
          to_connecting = seal_key_of(key, kToConnectingPurpose, hello, answer, *shared);
  if (is_connecting) return SealKeys{std::move(to_listener), std::move(to_connecting)};
  return SealKeys{std::move(to_connecting), std::move(to_listener)};
}

}  // namespace runjob::runtime
