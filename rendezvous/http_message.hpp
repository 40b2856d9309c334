#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/auth.hpp"
#include "rendezvous/protocol.hpp"

/// HTTP/1.1 messages as text, for both ends of the rendezvous; without sockets.
/// Source  RFC 9112. The parser is Boost.Beast's.
namespace runjob::rendezvous {

/// The start line and the headers of a message.
struct HttpHead {
  std::string method, target;  ///< of a request
  int status = 0;              ///< of a response
  int version = 11;            ///< 10 for HTTP/1.0, 11 for HTTP/1.1
  bool keep_alive = false;     ///< the sender can use the connection for another message
  std::vector<std::pair<std::string, std::string>> headers;

  /// The value of the first header with this name, in any case; nullopt without one.
  std::optional<std::string_view> find(std::string_view name) const;
  /// The same; "" without one.
  std::string_view value_of(std::string_view name) const { return find(name).value_or(std::string_view()); }
};

/// Parses one message from bytes as they arrive. Trailers of a chunked body are ignored.
/// Threads  a value, one at a time.
/// Errors   none thrown; see failure().
class HttpParser {
 public:
  enum class Kind { kRequest, kResponse };
  /// The part of the message that comes next. States only advance.
  enum class State { kHead, kBody, kComplete, kBroken };
  enum class Failure { kNone, kMalformed, kHeadTooLarge, kBodyTooLarge };

  HttpParser(Kind kind, std::uint32_t most_head_bytes, std::uint64_t most_body_bytes);
  ~HttpParser();

  /// Parses bytes at the front of `received` and removes them from it. Stops behind the head, so that the caller can
  /// judge the head before it reads a body, and behind the message.
  void parse(std::string& received);
  /// The connection has ended. It completes a response without a length; any other message remains incomplete.
  void end();

  State state() const { return state_; }
  Failure failure() const { return failure_; }
  /// Why the message is malformed, for people.
  const std::string& reason() const { return reason_; }

  /// Complete after kHead.
  const HttpHead& head() const { return head_; }
  std::string take_body() { return std::move(body_); }

 private:
  class Bytes;
  template <bool isRequest>
  class BeastParser;

  std::unique_ptr<Bytes> bytes_;
  State state_ = State::kHead;
  Failure failure_ = Failure::kNone;
  std::string reason_;
  HttpHead head_;
  std::string body_;
};

/// All of a request but its body. `host` is the value of the Host header.
std::string request_head(const Request& request, std::string_view host, const AuthHeaders& headers);

/// All of a response but its body. `version` is that of the request. With `keep_alive` false, the sender closes the
/// connection behind this response.
std::string response_head(const Response& response, const AuthHeaders& headers, int version, bool keep_alive);

}  // namespace runjob::rendezvous
