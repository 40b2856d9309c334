#pragma once

#include <functional>
#include <future>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "rendezvous/auth.hpp"
#include "tests/rendezvous/raw_socket.hpp"

namespace runjob::rendezvous {

/// A TCP server on a free port of 127.0.0.1 that treats its connections one after the other as it is told. Its steps
/// run in a thread of its own, so they must not contain Catch's assertions, which one thread may use at a time.
class ScriptedServer {
 public:
  using Step = std::function<void(RawSocket)>;

  explicit ScriptedServer(std::vector<Step> steps) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof any;
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
        ::listen(listener_.get(), 8) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &length) != 0)
      throw std::runtime_error("cannot listen on 127.0.0.1");
    port_ = ntohs(any.sin_port);
    done_ = std::async(std::launch::async, [this, steps = std::move(steps)] {
      for (const Step& step : steps)
        step(RawSocket(UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))));
    });
  }

  ~ScriptedServer() { ::shutdown(listener_.get(), SHUT_RDWR); }  // ends accept4() when a step was not reached

  /// Waits until all steps have ended; throws what one threw. What they wrote can be read after it.
  void finish() { done_.get(); }

  std::string port() const { return std::to_string(port_); }
  std::string address() const { return "http://127.0.0.1:" + port(); }

 private:
  UniqueFd listener_;
  int port_ = 0;
  std::future<void> done_;
};

/// The value of a header in the text of a message, "" when it is not there.
inline std::string header_in(const std::string& message, const std::string& name) {
  const std::size_t at = message.find("\r\n" + name + ": ");
  if (at == message.npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return message.substr(begin, message.find("\r\n", begin) - begin);
}

/// The server's side of a signed connection, byte by byte, so that a test can do it wrong.
class SignedAnswers {
 public:
  /// Reads the request for a nonce and answers it.
  SignedAnswers(RawSocket& socket, const JobKey& key) : socket_(socket) {
    const auto client = from_hex(header_in(socket.read_until("\r\n\r\n"), kNonceHeader)).value();
    const Nonce server = random_nonce();
    auth_.emplace(key, client, server);
    Response greeting;
    greeting.content_type.clear();
    send(greeting, to_hex(auth_->answer(greeting)), std::string(kNonceHeader) + ": " + to_hex(server) + "\r\n");
  }

  /// The next request's header, a GET without a body; `rank` is what it is expected to be from.
  std::string read_request(const std::string& target, int rank) {
    const std::string message = socket_.read_until("\r\n\r\n");
    auth_->next_request({"GET", target, "", rank}, sha256(""));
    return message;
  }

  Response answer(const std::string& body) const { return {200, "text/plain", body}; }
  std::string sign(const Response& response) const { return to_hex(auth_->answer(response)); }

  void send(const Response& response, const std::string& mac, const std::string& more_headers = "") {
    const std::string& body = response.body.str();
    socket_.send("HTTP/1.1 " + std::to_string(response.status) +
                 " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more_headers +
                 (body.empty() ? "" : "Content-Type: " + response.content_type + "\r\n") +
                 (mac.empty() ? "" : std::string(kMacHeader) + ": " + mac + "\r\n") + "\r\n" + body);
  }

 private:
  RawSocket& socket_;
  std::optional<ConnectionAuth> auth_;
};

/// The client's side of a signed connection, byte by byte.
class SignedRequests {
 public:
  /// Asks for the nonce and checks the answer's signature; throws when it is wrong.
  SignedRequests(RawSocket& socket, const JobKey& key) : socket_(socket) {
    const Nonce own = random_nonce();
    socket.send("GET " + std::string(kSessionTarget) + " HTTP/1.1\r\n" + kNonceHeader + ": " + to_hex(own) +
                "\r\n\r\n");
    std::string headers;
    const std::string text = socket.read_answer(&headers);
    const auto nonce = from_hex(header_in(headers, kNonceHeader));
    if (!nonce) throw std::runtime_error("no nonce: " + text);
    auth_.emplace(key, own, *nonce);
    if (!is_signed({200, "", {}}, headers)) throw std::runtime_error("the greeting is not signed");
  }

  /// The text of the connection's next request, signed.
  std::string next(const Request& request) {
    const Digest digest = sha256(request.body);
    const std::string mac = to_hex(auth_->next_request(request, digest));
    return text(request, to_hex(digest), mac);
  }
  static std::string text(const Request& request, const std::string& digest, const std::string& mac) {
    return request.method + " " + request.target +
           " HTTP/1.1\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n" +
           (request.process < 0 ? "" : std::string(kRankHeader) + ": " + std::to_string(request.process) + "\r\n") +
           kDigestHeader + ": " + digest + "\r\n" + kMacHeader + ": " + mac + "\r\n\r\n" + request.body;
  }

  bool is_signed(const Response& response, const std::string& headers) const {
    const auto mac = from_hex(header_in(headers, kMacHeader));
    return mac && *mac == auth_->answer(response);
  }

 private:
  RawSocket& socket_;
  std::optional<ConnectionAuth> auth_;
};

}  // namespace runjob::rendezvous
