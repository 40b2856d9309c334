#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "rendezvous/http_message.hpp"
#include "rendezvous/server/gatekeeper.hpp"
#include "rendezvous/server/http_server.hpp"

namespace runjob::rendezvous {

/// One connection of an HttpServer, over any kind of stream socket. For each request it reads the head, asks the
/// gatekeeper, reads the body, calls the handler and writes the reply. A peer that hangs up while its reply is awaited
/// ends the session; the reply is dropped.
/// Owner    the server's list of sessions and the coroutine run().
/// Threads  the executor's one thread.
/// Errors   replies only: 400 for malformed HTTP, 401 for a request that the gatekeeper refuses, 413 and 431 over a
///          limit, after each of which the session ends; 500 for a handler that throws.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using OnRefusal = std::function<void(const std::string& why)>;

  /// `on_refusal` is called for each request that the gatekeeper refuses.
  HttpSession(Socket socket, Gatekeeper gatekeeper, HttpServer::Handler handler,
              std::chrono::milliseconds message_timeout, OnRefusal on_refusal);

  /// Ends when the peer hangs up, breaks the protocol, is too slow, or close() is called. The caller keeps a
  /// shared_ptr to this until then.
  boost::asio::awaitable<void> run();

  /// Makes run() end at the next turn of the loop.
  void close();

  bool is_closed() const { return closed_; }
  bool is_stranger() const { return gatekeeper_.is_stranger(); }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  class PendingReply;

  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> serve(HttpParser& parser, Request request);
  boost::asio::awaitable<bool> read_head(HttpParser& parser);
  boost::asio::awaitable<bool> read(HttpParser& parser, HttpParser::State until);
  boost::asio::awaitable<std::optional<Response>> answer(Request request);
  boost::asio::awaitable<bool> write(Response response, int version, bool keep_alive);
  boost::asio::awaitable<bool> send(Response response, AuthHeaders headers, int version, bool keep_alive);
  boost::asio::awaitable<void> turn_down(std::string what);
  boost::asio::awaitable<void> refuse(Response response);
  void watch_for_hangup(std::weak_ptr<PendingReply> pending);

  TimePoint message_deadline() const;
  void set_deadline(TimePoint deadline);
  void clear_deadline();

  Socket socket_;
  boost::asio::steady_timer deadline_;  // closes the socket
  Gatekeeper gatekeeper_;
  HttpServer::Handler handler_;
  const std::chrono::milliseconds message_timeout_;
  const TimePoint proof_deadline_;  // for a stranger
  OnRefusal on_refusal_;
  std::string received_;                   // not parsed yet
  std::shared_ptr<PendingReply> pending_;  // the Reply that the handler holds refers to it weakly
  bool closed_ = false;
};

}  // namespace runjob::rendezvous
