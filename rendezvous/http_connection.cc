#include "rendezvous/http_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>
#include <system_error>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"

namespace runjob::rendezvous {
namespace {

constexpr std::uint32_t kMaxHeadBytes = 8 << 10;
constexpr std::size_t kBlock = 64 << 10;
/// All blobs of a gather with room for their CBOR headers.
constexpr std::uint64_t kMaxAnswerBytes = kMaxStoredBytes + (std::uint64_t{64} << 20);

using AddressList = UniqueHandle<addrinfo*, ::freeaddrinfo, nullptr>;

Status failure(int error_number) {
  return Status(Errc::kConnect, std::strerror(error_number));
}

int milliseconds_until(HttpConnection::TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

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
  Status status;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!socket_) connect(deadline);
    Response response;
    status = key_ && !auth_ ? greet(deadline) : Status();
    if (status.ok()) status = try_exchange(request, deadline, response);
    if (status.ok()) return response;
    socket_.reset();
    if (status.code() == Errc::kTimeout)
      throw Error(Errc::kTimeout,
                  fmt::format("rendezvous {}: no answer to {} {} in time", address_, request.method, request.target));
  }
  throw Error(Errc::kConnect, fmt::format("rendezvous {}: {} {}: connection lost twice: {}", address_, request.method,
                                          request.target, status.message()));
}

/// Looking up a host's name is the only operation that may block longer than its deadline.
std::vector<HttpConnection::Endpoint> HttpConnection::resolve() {
  Endpoint endpoint;
  if (!path_.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    std::memcpy(&endpoint.address, &address, sizeof address);
    endpoint.length = sizeof address;
    return {endpoint};
  }
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host_.c_str(), port_.c_str(), &hints, &found);
  const std::string reason = error == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(error);
  if (error != 0) throw Error(Errc::kConnect, fmt::format("rendezvous {}: look up {}: {}", address_, host_, reason));
  const AddressList list(found);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    std::memcpy(&endpoint.address, entry->ai_addr, entry->ai_addrlen);
    endpoint.length = entry->ai_addrlen;
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

void HttpConnection::connect(TimePoint deadline) {
  auth_.reset();
  Status status;
  for (const Endpoint& endpoint : resolve()) {
    status = connect_to(endpoint, deadline);
    if (status.ok()) return;
    socket_.reset();
  }
  throw Error(status.code(),
              fmt::format("rendezvous {}: cannot connect: {}; is the job still running?", address_, status.message()));
}

Status HttpConnection::connect_to(const Endpoint& endpoint, TimePoint deadline) {
  const int family = endpoint.address.ss_family;
  socket_.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return failure(errno);
  while (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.length) != 0) {
    if (errno == EAGAIN) {  // The queue of a Unix socket is full. No event announces that it has room again.
      if (milliseconds_until(deadline) == 0) return Status(Errc::kTimeout, "no answer in time");
      ::poll(nullptr, 0, 1);
      continue;
    }
    if (errno != EINPROGRESS) return failure(errno);
    const Status status = wait_for(POLLOUT, deadline);
    if (!status.ok()) return status;
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return failure(error);
    break;
  }
  const int on = 1;
  if (family != AF_UNIX) ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {};
}

/// Asks for the server's nonce. Its answer proves that the server holds the key, before anything of the job is sent.
Status HttpConnection::greet(TimePoint deadline) {
  const Request request{"GET", kSessionTarget, "", -1};
  const Nonce nonce = random_nonce();
  Answer answer;
  const Status status = send(request, {{kNonceHeader, to_hex(nonce)}}, deadline, answer);
  if (!status.ok()) return status;
  const auto server_nonce = from_hex(answer.nonce);
  if (server_nonce) auth_.emplace(*key_, nonce, *server_nonce);
  check_signature(request, answer);
  return {};
}

Status HttpConnection::try_exchange(const Request& request, TimePoint deadline, Response& response) {
  AuthHeaders headers;
  if (auth_) {
    const Digest digest = sha256(request.body);
    headers = {{kDigestHeader, to_hex(digest)}, {kMacHeader, to_hex(auth_->next_request(request, digest))}};
  }
  Answer answer;
  const Status status = send(request, headers, deadline, answer);
  if (!status.ok()) return status;
  if (key_) check_signature(request, answer);
  response = std::move(answer.response);
  return {};
}

/// Errors  Error(kAuth), without the text of the answer: its sender is unknown.
void HttpConnection::check_signature(const Request& request, const Answer& answer) {
  const auto mac = from_hex(answer.mac);
  if (auth_ && mac && equal(*mac, auth_->answer(answer.response))) return;
  socket_.reset();
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

Status HttpConnection::send(const Request& request, const AuthHeaders& headers, TimePoint deadline, Answer& answer) {
  const std::string message = request_head(request, path_.empty() ? host_ : "localhost", headers) + request.body;
  const Status written = write(message, deadline);
  if (written.code() == Errc::kTimeout) return written;

  // The answer is read also after writing has failed, because a server that refuses a request may answer before it has
  // read all of it.
  HttpParser parser(HttpParser::Kind::kResponse, kMaxHeadBytes, kMaxAnswerBytes);
  std::string received;
  Status status = read(parser, HttpParser::State::kBody, received, deadline);
  if (status.ok()) status = read(parser, HttpParser::State::kComplete, received, deadline);
  if (!status.ok()) return written.ok() ? status : written;
  const HttpHead& head = parser.head();
  if (!written.ok() || !head.keep_alive) socket_.reset();
  answer.nonce = head.value_of(kNonceHeader);
  answer.mac = head.value_of(kMacHeader);
  answer.response = {head.status, std::string(head.value_of("Content-Type")), parser.take_body()};
  return {};
}

Status HttpConnection::write(std::string_view bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      const Status status = wait_for(POLLOUT, deadline);
      if (!status.ok()) return status;
    } else if (errno != EINTR) {
      return failure(errno);
    }
  }
  return {};
}

/// Parses received bytes until the parser is in the state `until` or a later one.
Status HttpConnection::read(HttpParser& parser, HttpParser::State until, std::string& received, TimePoint deadline) {
  for (;;) {
    parser.parse(received);
    if (parser.state() == HttpParser::State::kBroken) return {Errc::kConnect, "malformed HTTP: " + parser.reason()};
    if (parser.state() >= until) return {};
    const Status status = wait_for(POLLIN, deadline);
    if (!status.ok()) return status;
    const std::size_t had = received.size();
    received.resize(had + kBlock);
    const auto got = ::recv(socket_.get(), received.data() + had, kBlock, 0);
    const int error = errno;
    received.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && error != EAGAIN && error != EINTR) return failure(error);
    if (got == 0) {
      parser.end();
      if (parser.state() < until) return {Errc::kConnect, "the connection ended before the answer was complete"};
    }
  }
}

Status HttpConnection::wait_for(short events, TimePoint deadline) {
  pollfd descriptor{socket_.get(), events, 0};
  for (;;) {
    const int ready = ::poll(&descriptor, 1, milliseconds_until(deadline));
    if (ready > 0) return {};
    if (ready == 0) return Status(Errc::kTimeout, "no answer in time");
    if (errno != EINTR) return failure(errno);
  }
}

}  // namespace runjob::rendezvous
