#pragma once

#include <optional>
#include <string>

#include "rendezvous/auth.hpp"

namespace runjob::rendezvous {

/// Who is at the other end of one server connection, and what it may therefore ask. A peer that the socket
/// itself vouches for (a process of this user on a Unix socket) may ask anything; any other has to prove
/// first that it holds the job's key. Pure: no sockets, no clock. auth.hpp has the protocol.
/// Threads  one.
class Gatekeeper {
 public:
  /// A request whose header has been read, its body not yet.
  struct Head {
    Request request;    ///< without its body
    std::string nonce;  ///< the headers of auth.hpp, "" when not there
    std::string mac;
    std::string digest;
  };
  enum class Verdict {
    kPass,    ///< read the body, give it to admit_body(), then carry the request out
    kAnswer,  ///< the request asked for a nonce: send greeting(), and go on
    kRefuse,  ///< answer 401 and end the connection, without reading more
  };

  /// `trusted`: vouched for. `key`: the job's, nullopt when the server has none; then only trusted peers get
  /// anywhere.
  Gatekeeper(bool trusted, std::optional<JobKey> key);

  Verdict admit(const Head& head);
  /// Whether this is the body that the request's header announced; if not, refuse as above.
  bool admit_body(const Body& body) const;

  /// The answer's Runjob-Mac; "" on a connection without one. Of an answer without a body the content type
  /// must be empty.
  std::string sign(const Response& response) const;
  /// The server's nonce, for the answer to kAnswer's request.
  std::string nonce() const { return to_hex(server_nonce_); }

  /// Whether the peer has not proved anything yet.
  bool is_stranger() const { return state_ == State::kStranger || state_ == State::kGreeted; }
  /// Whether a body can be allowed to follow the next header.
  bool may_send_body() const { return state_ != State::kStranger; }

 private:
  enum class State {
    kTrusted,   // vouched for, unsigned
    kStranger,  // may ask for a nonce, once
    kGreeted,   // has a nonce; its first request will show whether it holds the key
    kMember,    // has shown it: each request must be signed
  };

  Verdict greet(const Head& head);

  State state_;
  std::optional<JobKey> key_;
  Nonce server_nonce_{};
  std::optional<ConnectionAuth> auth_;
  Digest announced_{};  // of the body to come
};

}  // namespace runjob::rendezvous
