#include "runtime/links/handshake.hpp"

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
      .number(answer.encrypts)
      .add(answer.nonce);
}

rendezvous::Mac mac_of(const LinkKey& key, std::string_view purpose, const LinkHello& hello, const LinkAnswer& answer) {
  rendezvous::Hmac mac(key, purpose);
  return add_handshake(mac, hello, answer).result();
}

SealKey seal_key_of(const LinkKey& key, std::string_view purpose, const LinkHello& hello, const LinkAnswer& answer) {
  rendezvous::Hmac mac(key, purpose);
  return add_handshake(mac, hello, answer).secret();
}

constexpr std::string_view kAnswerPurpose = "runjob data 2: answer", kProofPurpose = "runjob data 2: proof",
                           kToListenerPurpose = "runjob data 2: sealed for the listening member",
                           kToConnectingPurpose = "runjob data 2: sealed for the connecting member";

}  // namespace

LinkKey make_link_key(const Secret& job_key, std::string_view purpose, const std::vector<rendezvous::Nonce>& nonces) {
  rendezvous::Hmac key(job_key, purpose);
  for (const rendezvous::Nonce& nonce : nonces) key.add(nonce);
  return key.secret();
}

LinkHello make_hello(int from, int to, bool encrypts) {
  LinkHello hello;
  hello.from = from;
  hello.to = to;
  hello.encrypts = encrypts ? 1 : 0;
  hello.nonce = rendezvous::random_nonce();
  return hello;
}

LinkAnswer make_answer(const LinkKey& key, const LinkHello& hello, bool encrypts) {
  LinkAnswer answer;
  answer.nonce = rendezvous::random_nonce();
  answer.encrypts = encrypts ? 1 : 0;
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

SealKeys make_seal_keys(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer, bool is_connecting) {
  const SealKey to_listener = seal_key_of(key, kToListenerPurpose, hello, answer),
                to_connecting = seal_key_of(key, kToConnectingPurpose, hello, answer);
  if (is_connecting) return {to_listener, to_connecting};
  return {to_connecting, to_listener};
}

}  // namespace runjob::runtime
