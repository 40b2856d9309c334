#include "runtime/links/handshake.hpp"

#include "rendezvous/hmac.hpp"

namespace runjob::runtime {
namespace {

rendezvous::Mac mac_of(const LinkKey& key, std::string_view purpose, const LinkHello& hello,
                       const rendezvous::Nonce& nonce) {
  return rendezvous::Hmac(key, purpose)
      .number(hello.magic)
      .number(static_cast<std::uint32_t>(hello.from))
      .number(static_cast<std::uint32_t>(hello.to))
      .add(hello.nonce)
      .add(nonce)
      .result();
}

constexpr std::string_view kAnswerPurpose = "runjob data 1: answer", kProofPurpose = "runjob data 1: proof";

}  // namespace

LinkKey make_link_key(const rendezvous::Mac& job_key, std::string_view purpose,
                      const std::vector<rendezvous::Nonce>& nonces) {
  rendezvous::Hmac key(job_key, purpose);
  for (const rendezvous::Nonce& nonce : nonces) key.add(nonce);
  return key.result();
}

LinkHello make_hello(int from, int to) {
  LinkHello hello;
  hello.from = from;
  hello.to = to;
  hello.nonce = rendezvous::random_nonce();
  return hello;
}

LinkAnswer make_answer(const LinkKey& key, const LinkHello& hello) {
  LinkAnswer answer;
  answer.nonce = rendezvous::random_nonce();
  answer.mac = mac_of(key, kAnswerPurpose, hello, answer.nonce);
  return answer;
}

LinkProof make_proof(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer) {
  return {mac_of(key, kProofPurpose, hello, answer.nonce)};
}

bool is_genuine(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer) {
  return rendezvous::equal(answer.mac, mac_of(key, kAnswerPurpose, hello, answer.nonce));
}

bool is_genuine(const LinkKey& key, const LinkHello& hello, const LinkAnswer& answer, const LinkProof& proof) {
  return rendezvous::equal(proof.mac, mac_of(key, kProofPurpose, hello, answer.nonce));
}

}  // namespace runjob::runtime
