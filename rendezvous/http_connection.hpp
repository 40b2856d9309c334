#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

#include "base/status.hpp"
#include "base/unique_handle.hpp"
#include "rendezvous/auth.hpp"
#include "rendezvous/http_message.hpp"
#include "rendezvous/job_key.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// A blocking HTTP/1.1 client on one keep-alive connection, which it makes when it is first needed and again after it
/// broke. With a key, each request is signed and each answer checked (auth.hpp); TCP requires a key.
/// Owner    the socket, which is non-blocking and not inherited by programs that this process starts.
/// Threads  one at a time; starts none.
/// Errors   throws Error: kConnect (with address and reason), kTimeout (no answer before the deadline), kAuth (the
///          server does not admit this process, or its answer is not signed with the key), kUnavailable (the server has
///          no room for a connection).
class HttpConnection {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Errors  Error(kUsage) for a bad address, or one over TCP without a key.
  explicit HttpConnection(std::string_view address, std::optional<JobKey> key = std::nullopt);

  /// Sends `request` and returns the answer, whatever its status. When the connection breaks before the
  /// answer is there, `request` is sent once more on a new one, so it must be harmless to carry out twice.
  Response exchange(const Request& request, TimePoint deadline);

  const std::string& address() const { return address_; }

 private:
  struct Endpoint {
    sockaddr_storage address{};
    socklen_t length = 0;
  };
  struct Answer {
    Response response;
    std::string nonce, mac;  // the headers of auth.hpp
  };

  void parse_address();
  std::vector<Endpoint> resolve();
  void connect(TimePoint deadline);
  Status connect_to(const Endpoint& endpoint, TimePoint deadline);
  Status greet(TimePoint deadline);
  Status try_exchange(const Request& request, TimePoint deadline, Response& response);
  Status send(const Request& request, const AuthHeaders& headers, TimePoint deadline, Answer& answer);
  Status write(std::string_view bytes, TimePoint deadline);
  Status read(HttpParser& parser, HttpParser::State until, std::string& received, TimePoint deadline);
  Status wait_for(short events, TimePoint deadline);
  void check_signature(const Request& request, const Answer& answer);

  std::string address_;
  std::string path_;  // of a Unix socket, or
  std::string host_, port_;
  std::optional<JobKey> key_;
  std::optional<ConnectionAuth> auth_;  // of the connection that is open
  UniqueFd socket_;
};

}  // namespace runjob::rendezvous
