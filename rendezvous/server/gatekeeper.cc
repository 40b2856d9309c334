#include "rendezvous/server/gatekeeper.hpp"

#include <utility>

namespace runjob::rendezvous {

Gatekeeper::Gatekeeper(bool trusted, std::optional<JobKey> key)
    : state_(trusted ? State::kTrusted : State::kStranger), key_(std::move(key)) {}

Gatekeeper::Verdict Gatekeeper::admit(const Head& head) {
  if (key_ && !auth_ && head.request.target == kSessionTarget) return greet(head);
  switch (state_) {
    case State::kTrusted:
      return Verdict::kPass;
    case State::kStranger:
      return Verdict::kRefuse;
    case State::kGreeted:
    case State::kMember:
      break;
  }
  const auto mac = from_hex(head.mac);
  const auto digest = from_hex(head.digest);
  if (!mac || !digest || !equal(*mac, auth_->next_request(head.request, *digest))) return Verdict::kRefuse;
  state_ = State::kMember;
  announced_ = *digest;
  return Verdict::kPass;
}

Gatekeeper::Verdict Gatekeeper::greet(const Head& head) {
  const auto client_nonce = from_hex(head.nonce);
  if (!client_nonce || head.request.method != "GET") return Verdict::kRefuse;
  server_nonce_ = random_nonce();
  auth_.emplace(*key_, *client_nonce, server_nonce_);
  state_ = State::kGreeted;
  return Verdict::kAnswer;
}

bool Gatekeeper::admit_body(const Body& body) const {
  return !auth_ || equal(body.digest(), announced_);
}

std::string Gatekeeper::sign(const Response& response) const {
  return auth_ ? to_hex(auth_->answer(response)) : "";
}

}  // namespace runjob::rendezvous
