#pragma once

#include <optional>
#include <string>

#include "rendezvous/auth.hpp"

namespace runjob::rendezvous {

/// Decides which requests a server connection may make. A peer that the socket itself identifies (a process of this
/// user on a Unix socket) may make any request; any other peer has to prove first that it holds the job's key. Pure: no
/// sockets, no clock. auth.hpp has the protocol.
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

  /// `trusted`: the socket identifies the peer. `key`: the job's key, nullopt when the server has none; then only
  /// trusted peers are admitted.
  Gatekeeper(bool trusted, std::optional<JobKey> key);

  Verdict admit(const Head& head);
  /// True if this is the body that the request's header announced. If not, the caller refuses the request as above.
  bool admit_body(const Body& body) const;

  /// The Runjob-Mac of `response`; "" on a connection without a key. A response without a body must have an empty
  /// content type.
  std::string sign(const Response& response) const;
  /// The server's nonce, for the answer to kAnswer's request.
  std::string nonce() const { return to_hex(server_nonce_); }

  /// True until the peer has proved that it holds the key.
  bool is_stranger() const { return state_ == State::kStranger || state_ == State::kGreeted; }
  /// True if the next request may have a body.
  bool may_send_body() const { return state_ != State::kStranger; }

 private:
  enum class State {
    kTrusted,   // identified by the socket, unsigned
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
