#include "rendezvous/http_connection.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"

namespace runjob::rendezvous {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

/// All blobs of a gather with room for their CBOR headers.
constexpr std::uint64_t kMaxAnswerBytes = kMaxStoredBytes + (std::uint64_t{64} << 20);

}  // namespace

HttpConnection::HttpConnection(std::string_view address, std::optional<JobKey> key)
    : address_(address), key_(std::move(key)) {
  parse_address();
  if (path_.empty() && !key_)
    throw Error(Errc::kUsage, fmt::format("rendezvous address '{}': over a network the job's key is needed; "
                                          "RUNJOB_JOB_KEY_FILE must name its file",
                                          address_));
}

void HttpConnection::parse_address() {
  constexpr std::string_view kUnix = "unix:", kHttp = "http://";
  const std::string_view address = address_;
  const auto refuse = [this] {
    return Error(Errc::kUsage, fmt::format("rendezvous address '{}': expected unix:PATH with a path under {} bytes, or "
                                           "http://HOST:PORT",
                                           address_, sizeof(sockaddr_un::sun_path)));
  };
  if (address.starts_with(kUnix)) {
    path_ = address.substr(kUnix.size());
    if (path_.empty() || path_.size() >= sizeof(sockaddr_un::sun_path)) throw refuse();
    return;
  }
  if (!address.starts_with(kHttp)) throw refuse();
  const std::string_view authority = address.substr(kHttp.size());
  const std::size_t colon = authority.rfind(':');
  if (colon == authority.npos) throw refuse();
  host_ = authority.substr(0, colon);
  port_ = authority.substr(colon + 1);
  const bool brackets = host_.size() > 2 && host_.front() == '[' && host_.back() == ']';
  if (brackets) host_ = host_.substr(1, host_.size() - 2);
  if (host_.empty() || (!brackets && host_.find_first_of(":[]") != host_.npos)) throw refuse();
  parse_integer(port_, fmt::format("rendezvous address '{}': port", address_), 1, 65535);
}

Response HttpConnection::exchange(const Request& request, TimePoint deadline) {
  error_code error;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!stream_.socket().is_open()) connect(deadline);
    Response response;
    error = key_ && !auth_ ? greet(deadline) : error_code();
    if (!error) error = try_exchange(request, deadline, response);
    if (!error) return response;
    stream_.close();
    if (error == beast::error::timeout)
      throw Error(Errc::kTimeout,
                  fmt::format("rendezvous {}: no answer to {} {} in time", address_, request.method, request.target));
  }
  throw Error(Errc::kConnect, fmt::format("rendezvous {}: {} {}: connection lost twice: {}", address_, request.method,
                                          request.target, error.message()));
}

/// The only place that may block longer than its deadline: looking up a host name.
std::vector<HttpConnection::Endpoint> HttpConnection::resolve() {
  if (!path_.empty()) return {asio::local::stream_protocol::endpoint(path_)};
  asio::ip::tcp::resolver resolver(context_);
  error_code error;
  std::vector<Endpoint> endpoints;
  for (const auto& entry : resolver.resolve(host_, port_, error)) endpoints.emplace_back(entry.endpoint());
  if (error)
    throw Error(Errc::kConnect, fmt::format("rendezvous {}: look up {}: {}", address_, host_, error.message()));
  return endpoints;
}

void HttpConnection::connect(TimePoint deadline) {
  auth_.reset();
  error_code error;
  for (const Endpoint& endpoint : resolve()) {
    error = connect_to(endpoint, deadline);
    if (!error) return;
    stream_.close();
  }
  throw Error(error == beast::error::timeout ? Errc::kTimeout : Errc::kConnect,
              fmt::format("rendezvous {}: cannot connect: {}; is the job still running?", address_, error.message()));
}

error_code HttpConnection::connect_to(const Endpoint& endpoint, TimePoint deadline) {
  const int family = endpoint.protocol().family();
  // Not Asio's open(): a process that another thread starts now must not inherit the socket.
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return error_code(errno, boost::system::system_category());
  error_code error;
  stream_.socket().assign(endpoint.protocol(), descriptor, error);
  if (error) {
    ::close(descriptor);
    return error;
  }
  error = run(deadline, [&](auto done) { stream_.async_connect(endpoint, done); });
  if (!error && family != AF_UNIX) stream_.socket().set_option(asio::ip::tcp::no_delay(true), error);
  return error;
}

/// Asks for the server's nonce, and learns that the server holds the key before anything of the job is sent.
error_code HttpConnection::greet(TimePoint deadline) {
  const Request request{"GET", kSessionTarget, "", -1};
  const Nonce nonce = random_nonce();
  Answer answer;
  const error_code error = send(request, {{kNonceHeader, to_hex(nonce)}}, deadline, answer);
  if (error) return error;
  const auto server_nonce = from_hex(answer.nonce);
  if (server_nonce) auth_.emplace(*key_, nonce, *server_nonce);
  check_signature(request, answer);
  return {};
}

error_code HttpConnection::try_exchange(const Request& request, TimePoint deadline, Response& response) {
  AuthHeaders headers;
  if (auth_) {
    const Digest digest = sha256(request.body);
    headers = {{kDigestHeader, to_hex(digest)}, {kMacHeader, to_hex(auth_->next_request(request, digest))}};
  }
  Answer answer;
  const error_code error = send(request, headers, deadline, answer);
  if (error) return error;
  if (key_) check_signature(request, answer);
  response = std::move(answer.response);
  return {};
}

/// Errors  Error(kAuth), without a word of the answer's text: nobody knows whose it is.
void HttpConnection::check_signature(const Request& request, const Answer& answer) {
  const auto mac = from_hex(answer.mac);
  if (auth_ && mac && equal(*mac, auth_->answer(answer.response))) return;
  stream_.close();
  const int status = answer.response.status;
  if (answer.mac.empty() && status == 503)
    throw Error(Errc::kUnavailable, fmt::format("rendezvous {}: it has no room for another connection", address_));
  if (answer.mac.empty() && (status == 401 || status == 403))
    throw Error(Errc::kAuth, fmt::format("rendezvous {}: {} {}: refused with status {}; RUNJOB_JOB_KEY_FILE must name "
                                         "the key of this job",
                                         address_, request.method, request.target, status));
  throw Error(Errc::kAuth, fmt::format("rendezvous {}: {} {}: the answer (status {}) is not signed with the job's key; "
                                       "is this the job's own rendezvous?",
                                       address_, request.method, request.target, status));
}

error_code HttpConnection::send(const Request& request, const AuthHeaders& headers, TimePoint deadline,
                                Answer& answer) {
  http::request<http::span_body<const char>> message(http::string_to_verb(request.method), request.target, 11);
  message.set(http::field::host, path_.empty() ? host_ : "localhost");
  if (request.rank >= 0) message.set(kRankHeader, std::to_string(request.rank));
  for (const auto& [name, value] : headers) message.set(name, value);
  message.body() = {request.body.data(), request.body.size()};
  message.prepare_payload();
  const error_code write_error = run(deadline, [&](auto done) { http::async_write(stream_, message, done); });
  if (write_error == beast::error::timeout) return write_error;

  // Also when writing failed: a server that refuses a request may answer before it has read all of it.
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxAnswerBytes);
  const error_code error = run(deadline, [&](auto done) { http::async_read(stream_, buffer, parser, done); });
  if (error) return write_error ? write_error : error;
  if (write_error || !parser.keep_alive()) stream_.close();
  auto message_back = parser.release();
  answer.nonce = std::string(message_back[kNonceHeader]);
  answer.mac = std::string(message_back[kMacHeader]);
  answer.response = {static_cast<int>(message_back.result_int()), std::string(message_back[http::field::content_type]),
                     std::move(message_back.body())};
  return {};
}

/// Starts an operation with `start(completion handler)` and lets the loop run until it is done.
template <class Start>
error_code HttpConnection::run(TimePoint deadline, Start start) {
  error_code result;
  stream_.expires_at(deadline);
  start([&result](error_code error, auto&&...) { result = error; });
  context_.restart();
  context_.run();
  return result;
}

}  // namespace runjob::rendezvous
