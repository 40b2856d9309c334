#include "rendezvous/server/http_session.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <limits>
#include <sys/socket.h>
#include <utility>
#include <variant>

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/parse.hpp"
#include "rendezvous/no_throw.hpp"

namespace runjob::rendezvous {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::uint32_t kMaxHeaderBytes = 16 << 10;

/// Whether nobody is there to be answered: the peer hung up, or was too slow and Beast closed the socket.
bool hung_up(error_code error) {
  if (!error) return false;
  return error.category() != http::make_error_code(http::error::bad_method).category() ||
         error == http::error::end_of_stream || error == http::error::partial_message;
}

Response refusal_of(error_code error) {
  if (error == http::error::body_limit)
    return error_response(413, fmt::format("the body is over the limit of {} bytes", kMaxBodyBytes));
  if (error == http::error::header_limit)
    return error_response(431, fmt::format("the headers are over the limit of {} bytes", kMaxHeaderBytes));
  return error_response(400, "malformed HTTP: " + error.message());
}

std::string_view value_of(const http::fields& fields, const char* name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->value().data(), found->value().size());
}

/// What the gatekeeper judges by. Errors  Error(kUsage) for a rank that is no number.
Gatekeeper::Head head_of(const http::request<http::string_body>& message) {
  Gatekeeper::Head head;
  head.request.method = std::string(message.method_string());
  head.request.target = std::string(message.target());
  head.nonce = value_of(message, kNonceHeader);
  head.mac = value_of(message, kMacHeader);
  head.digest = value_of(message, kDigestHeader);
  if (message.find(kRankHeader) != message.end())
    head.request.rank = static_cast<int>(
        parse_integer(value_of(message, kRankHeader), kRankHeader, 0, std::numeric_limits<int>::max()));
  return head;
}

/// A stranger's text, for the log.
std::string show(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string result(text.substr(0, kShown));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

/// The head, or how to refuse a message that has none.
std::variant<Gatekeeper::Head, Response> head_or_refusal(const http::request<http::string_body>& message) {
  try {
    return head_of(message);
  } catch (const Error& error) {
    return error_response(400, error.what());
  }
}

}  // namespace

/// Where a reply is put down and waited for.
class HttpSession::PendingReply {
 public:
  explicit PendingReply(const Stream::executor_type& executor)
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

  /// Cancelled by complete() and give_up(); has no deadline, since it is the service that says when a wait is
  /// over.
  auto wait() { return woken_.async_wait(kNoThrow); }

 private:
  std::optional<Response> response_;
  bool gone_ = false;
  asio::steady_timer woken_;
};

HttpSession::HttpSession(Socket socket, Gatekeeper gatekeeper, HttpServer::Handler handler,
                         std::chrono::milliseconds message_timeout, OnRefusal on_refusal)
    : stream_(std::move(socket)),
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
  stream_.close();
}

/// Whether the connection is good for another request.
asio::awaitable<bool> HttpSession::serve_one() {
  Parser parser;
  parser.body_limit(gatekeeper_.may_send_body() ? kMaxBodyBytes : 0);
  parser.header_limit(kMaxHeaderBytes);
  const error_code error = co_await read_header(parser);
  if (closed_ || hung_up(error)) co_return false;
  if (error == http::error::body_limit && gatekeeper_.is_stranger()) {
    co_await turn_down("a request with a body");
    co_return false;
  }
  std::variant<Gatekeeper::Head, Response> head = error ? refusal_of(error) : head_or_refusal(parser.get());
  if (auto* refusal = std::get_if<Response>(&head)) {
    co_await refuse(std::move(*refusal));
    co_return false;
  }
  const unsigned version = parser.get().version();
  switch (gatekeeper_.admit(std::get<Gatekeeper::Head>(head))) {
    case Gatekeeper::Verdict::kPass:
      co_return co_await serve(parser, std::move(std::get<Gatekeeper::Head>(head).request));
    case Gatekeeper::Verdict::kAnswer: {
      Response greeting;
      co_return co_await write(std::move(greeting), version, true);
    }
    case Gatekeeper::Verdict::kRefuse:
      break;
  }
  co_await turn_down(std::get<Gatekeeper::Head>(head).request.target);
  co_return false;
}

/// Reads the body of an admitted request and answers it.
asio::awaitable<bool> HttpSession::serve(Parser& parser, Request request) {
  // An answer to HEAD may have no body; ours has one that says what is possible, and then the connection ends.
  const bool keep_alive = parser.keep_alive() && parser.get().method() != http::verb::head;
  const unsigned version = parser.get().version();
  const error_code error = co_await read_body(parser);
  if (closed_ || hung_up(error)) co_return false;
  if (error) {
    co_await refuse(refusal_of(error));
    co_return false;
  }
  request.body = std::move(parser.get().body());
  if (!gatekeeper_.admit_body(request.body)) {
    co_await turn_down(request.target);
    co_return false;
  }
  std::optional<Response> response = co_await answer(std::move(request));
  if (!response) co_return false;
  const bool written = co_await write(std::move(*response), version, keep_alive);
  co_return written&& keep_alive;
}

/// The connection of somebody who has shown who he is may be idle for ever; once a request has begun it has
/// message_timeout_ to be complete. A stranger has that time for all.
asio::awaitable<error_code> HttpSession::read_header(Parser& parser) {
  if (!gatekeeper_.is_stranger() && buffer_.size() == 0) {
    stream_.expires_never();
    const auto [error] = co_await stream_.socket().async_wait(asio::socket_base::wait_read, kNoThrow);
    if (error) co_return error;
  }
  if (gatekeeper_.is_stranger()) {
    stream_.expires_at(proof_deadline_);
  } else {
    stream_.expires_after(message_timeout_);
  }
  const auto [error, bytes] = co_await http::async_read_header(stream_, buffer_, parser, kNoThrow);
  co_return error;
}

/// Within the time that began with the header.
asio::awaitable<error_code> HttpSession::read_body(Parser& parser) {
  const auto [error, bytes] = co_await http::async_read(stream_, buffer_, parser, kNoThrow);
  stream_.expires_never();
  co_return error;
}

/// Nothing when the peer hung up before the reply came.
asio::awaitable<std::optional<Response>> HttpSession::answer(Request request) {
  pending_ = std::make_shared<PendingReply>(stream_.get_executor());
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
    if (!closed_) stream_.socket().cancel(ignored);  // ends the watch
  }
  std::optional<Response> response = pending_->take();
  pending_.reset();
  co_return response;
}

/// The socket becomes readable when the peer hangs up, or when it has sent its next request early: then there
/// is nothing more to watch.
void HttpSession::watch_for_hangup(std::weak_ptr<PendingReply> weak) {
  stream_.socket().async_wait(asio::socket_base::wait_read, [this, weak](error_code error) {
    const auto pending = weak.lock();  // it holds: as long as this session waits for it, `this` lives
    if (!pending || error || closed_) return;
    char byte;
    const auto got = ::recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) pending->give_up();
  });
}

asio::awaitable<bool> HttpSession::write(Response response, unsigned version, bool keep_alive) {
  if (response.body.empty()) response.content_type.clear();
  const std::string mac = gatekeeper_.sign(response);
  AuthHeaders headers;
  if (!mac.empty()) headers.emplace_back(kMacHeader, mac);
  if (gatekeeper_.is_stranger() && !mac.empty()) headers.emplace_back(kNonceHeader, gatekeeper_.nonce());
  co_return co_await send(std::move(response), std::move(headers), version, keep_alive);
}

asio::awaitable<bool> HttpSession::send(Response response, AuthHeaders headers, unsigned version, bool keep_alive) {
  const std::string& bytes = response.body.str();
  http::response<http::span_body<const char>> message(static_cast<http::status>(response.status), version);
  for (const auto& [name, value] : headers) message.set(name, value);
  if (!bytes.empty()) message.set(http::field::content_type, response.content_type);
  message.keep_alive(keep_alive);
  message.body() = {bytes.data(), bytes.size()};
  message.prepare_payload();
  stream_.expires_after(message_timeout_);
  const auto [error, written] = co_await http::async_write(stream_, message, kNoThrow);
  stream_.expires_never();
  co_return !error;
}

/// Answers and ends the connection. What the peer still sends is read and thrown away first: closing with
/// unread bytes would reset the connection, and the peer might lose the answer.
asio::awaitable<void> HttpSession::refuse(Response response) {
  AuthHeaders unsigned_headers;
  const bool written = co_await send(std::move(response), std::move(unsigned_headers), 11, false);
  if (!written || closed_) co_return;
  error_code ignored;
  stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  const bool is_stranger = gatekeeper_.is_stranger();
  if (is_stranger) {
    stream_.expires_at(proof_deadline_);
  } else {
    stream_.expires_after(message_timeout_);
  }
  char scrap[16 << 10];
  const auto space = asio::buffer(scrap);
  for (std::size_t left = is_stranger ? 4 * sizeof scrap : 2 * kMaxBodyBytes; left > sizeof scrap;) {
    const auto [error, bytes] = co_await stream_.async_read_some(space, kNoThrow);
    if (error) co_return;
    left -= bytes;
  }
}

/// For a request that the gatekeeper does not let pass: one that nobody of the job has sent like this, here
/// and now.
asio::awaitable<void> HttpSession::turn_down(std::string what) {
  on_refusal_(fmt::format("{} is not signed with the job's key", show(what)));
  Response response = error_response(401, "the request is not signed with the job's key");
  co_await refuse(std::move(response));
}

}  // namespace runjob::rendezvous
