#include "rendezvous/server/http_session.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <limits>
#include <sys/socket.h>
#include <utility>
#include <variant>

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/parse.hpp"
#include "rendezvous/no_throw.hpp"

namespace runjob::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using State = HttpParser::State;
using Failure = HttpParser::Failure;

constexpr std::uint32_t kMaxHeadBytes = 16 << 10;

Response refusal_of(const HttpParser& parser) {
  if (parser.failure() == Failure::kBodyTooLarge)
    return error_response(413, fmt::format("the body is over the limit of {} bytes", kMaxBodyBytes));
  if (parser.failure() == Failure::kHeadTooLarge)
    return error_response(431, fmt::format("the headers are over the limit of {} bytes", kMaxHeadBytes));
  return error_response(400, "malformed HTTP: " + parser.reason());
}

/// The parts of a request by which the gatekeeper judges it. Errors  Error(kUsage) for a rank that is not a number.
Gatekeeper::Head head_of(const HttpHead& message) {
  Gatekeeper::Head head;
  head.request.method = message.method;
  head.request.target = message.target;
  head.nonce = message.value_of(kNonceHeader);
  head.mac = message.value_of(kMacHeader);
  head.digest = message.value_of(kDigestHeader);
  if (const auto rank = message.find(kRankHeader))
    head.request.process = static_cast<int>(parse_integer(*rank, kRankHeader, 0, std::numeric_limits<int>::max()));
  return head;
}

/// The text of a stranger, for the log.
std::string show(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string result(text.substr(0, kShown));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

/// The head of the message, or the refusal of a message without a correct one.
std::variant<Gatekeeper::Head, Response> head_or_refusal(const HttpParser& parser) {
  if (parser.state() == State::kBroken) return refusal_of(parser);
  try {
    return head_of(parser.head());
  } catch (const Error& error) {
    return error_response(400, error.what());
  }
}

}  // namespace

/// The reply to the current request, which the coroutine waits for.
class HttpSession::PendingReply {
 public:
  explicit PendingReply(const Socket::executor_type& executor)
      : woken_(executor, asio::steady_timer::time_point::max()) {}

  void complete(Response response) {
    response_ = std::move(response);
    woken_.cancel();
  }
  void give_up() {
    gone_ = true;
    woken_.cancel();
  }
  bool over() const { return gone_ || response_; }
  std::optional<Response> take() { return gone_ ? std::nullopt : std::move(response_); }

  /// complete() and give_up() cancel it. It has no deadline, because the service ends the waits of its requests.
  auto wait() { return woken_.async_wait(kNoThrow); }

 private:
  std::optional<Response> response_;
  bool gone_ = false;
  asio::steady_timer woken_;
};

HttpSession::HttpSession(Socket socket, Gatekeeper gatekeeper, HttpServer::Handler handler,
                         std::chrono::milliseconds message_timeout, OnRefusal on_refusal)
    : socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      gatekeeper_(std::move(gatekeeper)),
      handler_(std::move(handler)),
      message_timeout_(message_timeout),
      proof_deadline_(std::chrono::steady_clock::now() + message_timeout),
      on_refusal_(std::move(on_refusal)) {}

asio::awaitable<void> HttpSession::run() {
  while (!closed_) {
    const bool more = co_await serve_one();
    if (!more) break;
  }
  close();
}

void HttpSession::close() {
  closed_ = true;
  if (pending_) pending_->give_up();
  error_code ignored;
  socket_.close(ignored);
  clear_deadline();
}

/// Serves one request. Returns whether the connection can be used for another one.
asio::awaitable<bool> HttpSession::serve_one() {
  HttpParser parser(HttpParser::Kind::kRequest, kMaxHeadBytes, gatekeeper_.may_send_body() ? kMaxBodyBytes : 0);
  const bool received = co_await read_head(parser);
  if (!received) co_return false;
  if (parser.failure() == Failure::kBodyTooLarge && gatekeeper_.is_stranger()) {
    co_await turn_down("a request with a body");
    co_return false;
  }
  std::variant<Gatekeeper::Head, Response> head = head_or_refusal(parser);
  if (auto* refusal = std::get_if<Response>(&head)) {
    co_await refuse(std::move(*refusal));
    co_return false;
  }
  switch (gatekeeper_.admit(std::get<Gatekeeper::Head>(head))) {
    case Gatekeeper::Verdict::kPass:
      co_return co_await serve(parser, std::move(std::get<Gatekeeper::Head>(head).request));
    case Gatekeeper::Verdict::kAnswer: {
      Response greeting;
      co_return co_await write(std::move(greeting), parser.head().version, true);
    }
    case Gatekeeper::Verdict::kRefuse:
      break;
  }
  co_await turn_down(std::get<Gatekeeper::Head>(head).request.target);
  co_return false;
}

/// Reads the body of an admitted request and answers it.
asio::awaitable<bool> HttpSession::serve(HttpParser& parser, Request request) {
  // A response to HEAD may have no body. This one has a body with the possible methods, so the connection ends then.
  const bool keep_alive = parser.head().keep_alive && request.method != "HEAD";
  const bool received = co_await read(parser, State::kComplete);
  if (!received) co_return false;
  clear_deadline();
  if (parser.state() == State::kBroken) {
    co_await refuse(refusal_of(parser));
    co_return false;
  }
  request.body = parser.take_body();
  if (!gatekeeper_.admit_body(request.body)) {
    co_await turn_down(request.target);
    co_return false;
  }
  std::optional<Response> response = co_await answer(std::move(request));
  if (!response) co_return false;
  const bool written = co_await write(std::move(*response), parser.head().version, keep_alive);
  co_return written&& keep_alive;
}

/// A member's connection may be idle without limit; a request that has begun must be complete within message_timeout_.
/// A stranger has that time for everything that it sends. Returns whether the head has been parsed, or has been
/// refused.
asio::awaitable<bool> HttpSession::read_head(HttpParser& parser) {
  if (!gatekeeper_.is_stranger() && received_.empty()) {
    clear_deadline();
    const auto [error] = co_await socket_.async_wait(asio::socket_base::wait_read, kNoThrow);
    if (error || closed_) co_return false;
  }
  set_deadline(message_deadline());
  co_return co_await read(parser, State::kBody);
}

/// Parses received bytes until the parser is in the state `until` or a later one. Returns false when the peer hangs up
/// or the deadline passes before.
asio::awaitable<bool> HttpSession::read(HttpParser& parser, State until) {
  constexpr std::size_t kHeadBlock = 4 << 10, kBodyBlock = 64 << 10;
  for (;;) {
    parser.parse(received_);
    if (parser.state() >= until) co_return true;
    const std::size_t had = received_.size();
    received_.resize(had + (parser.state() == State::kHead ? kHeadBlock : kBodyBlock));
    const auto space = asio::buffer(received_.data() + had, received_.size() - had);
    const auto [error, bytes] = co_await socket_.async_read_some(space, kNoThrow);
    received_.resize(had + bytes);
    if (error || closed_) co_return false;
  }
}

/// The time by which the peer must have sent a message or read one.
HttpSession::TimePoint HttpSession::message_deadline() const {
  return gatekeeper_.is_stranger() ? proof_deadline_ : std::chrono::steady_clock::now() + message_timeout_;
}

void HttpSession::set_deadline(TimePoint deadline) {
  deadline_.expires_at(deadline);
  deadline_.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    // The deadline may have been moved after the timer had expired.
    if (error || !self || self->deadline_.expiry() > std::chrono::steady_clock::now()) return;
    error_code ignored;
    self->socket_.close(ignored);
  });
}

void HttpSession::clear_deadline() {
  deadline_.expires_at(TimePoint::max());
}

/// The reply of the handler; nullopt when the peer hung up before it came.
asio::awaitable<std::optional<Response>> HttpSession::answer(Request request) {
  pending_ = std::make_shared<PendingReply>(socket_.get_executor());
  const std::weak_ptr<PendingReply> weak = pending_;
  Reply reply = [weak](Response response) {
    if (const auto pending = weak.lock()) pending->complete(std::move(response));
  };
  try {
    handler_(std::move(request), std::move(reply));
  } catch (const std::exception& error) {
    log::error("rendezvous: a request could not be answered: {}", error.what());
    pending_->complete(error_response(500, error.what()));
  }
  if (!pending_->over()) {
    watch_for_hangup(weak);
    co_await pending_->wait();
    error_code ignored;
    if (!closed_) socket_.cancel(ignored);  // ends the watch
  }
  std::optional<Response> response = pending_->take();
  pending_.reset();
  co_return response;
}

/// The socket becomes readable when the peer hangs up, or when it has sent its next request early. In the second case
/// the watch ends.
void HttpSession::watch_for_hangup(std::weak_ptr<PendingReply> weak) {
  socket_.async_wait(asio::socket_base::wait_read, [this, weak](error_code error) {
    const auto pending = weak.lock();  // it holds: as long as this session waits for it, `this` lives
    if (!pending || error || closed_) return;
    char byte;
    const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) pending->give_up();
  });
}

asio::awaitable<bool> HttpSession::write(Response response, int version, bool keep_alive) {
  if (response.body.empty()) response.content_type.clear();
  const std::string mac = gatekeeper_.sign(response);
  AuthHeaders headers;
  if (!mac.empty()) headers.emplace_back(kMacHeader, mac);
  if (gatekeeper_.is_stranger() && !mac.empty()) headers.emplace_back(kNonceHeader, gatekeeper_.nonce());
  co_return co_await send(std::move(response), std::move(headers), version, keep_alive);
}

asio::awaitable<bool> HttpSession::send(Response response, AuthHeaders headers, int version, bool keep_alive) {
  const std::string head = response_head(response, headers, version, keep_alive);
  const std::array<asio::const_buffer, 2> message{asio::buffer(head), asio::buffer(response.body.str())};
  set_deadline(std::chrono::steady_clock::now() + message_timeout_);
  const auto [error, written] = co_await asio::async_write(socket_, message, kNoThrow);
  clear_deadline();
  co_return !error;
}

/// Answers and ends the connection. What the peer still sends is read and thrown away first: closing with
/// unread bytes would reset the connection, and the peer might lose the answer.
asio::awaitable<void> HttpSession::refuse(Response response) {
  AuthHeaders unsigned_headers;
  const bool written = co_await send(std::move(response), std::move(unsigned_headers), 11, false);
  if (!written || closed_) co_return;
  error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  set_deadline(message_deadline());
  char scrap[16 << 10];
  const auto space = asio::buffer(scrap);
  for (std::size_t left = gatekeeper_.is_stranger() ? 4 * sizeof scrap : 2 * kMaxBodyBytes; left > sizeof scrap;) {
    const auto [error, bytes] = co_await socket_.async_read_some(space, kNoThrow);
    if (error) co_return;
    left -= bytes;
  }
}

/// Answers a request that the gatekeeper has refused, since no member of the job has sent it on this connection.
asio::awaitable<void> HttpSession::turn_down(std::string what) {
  on_refusal_(fmt::format("{} is not signed with the job's key", show(what)));
  Response response = error_response(401, "the request is not signed with the job's key");
  co_await refuse(std::move(response));
}

}  // namespace runjob::rendezvous
