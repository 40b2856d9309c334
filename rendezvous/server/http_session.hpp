#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "rendezvous/server/gatekeeper.hpp"
#include "rendezvous/server/http_server.hpp"

namespace runjob::rendezvous {

/// One connection of an HttpServer, whatever kind of stream socket carries it: reads a request, asks the
/// gatekeeper, hands it on, writes its reply, and again. A peer that hangs up while its reply is awaited ends
/// the session; the reply is dropped.
/// Owner    the server's list of sessions and the coroutine run().
/// Threads  the executor's one thread.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using OnRefusal = std::function<void(const std::string& why)>;

  /// `on_refusal` hears of each request that did not get past the gatekeeper.
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
  using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  class PendingReply;

  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> serve(Parser& parser, Request request);
  boost::asio::awaitable<boost::system::error_code> read_header(Parser& parser);
  boost::asio::awaitable<boost::system::error_code> read_body(Parser& parser);
  boost::asio::awaitable<std::optional<Response>> answer(Request request);
  boost::asio::awaitable<bool> write(Response response, unsigned version, bool keep_alive);
  boost::asio::awaitable<bool> send(Response response, AuthHeaders headers, unsigned version, bool keep_alive);
  boost::asio::awaitable<void> turn_down(std::string what);
  boost::asio::awaitable<void> refuse(Response response);
  void watch_for_hangup(std::weak_ptr<PendingReply> pending);

  Stream stream_;
  Gatekeeper gatekeeper_;
  HttpServer::Handler handler_;
  const std::chrono::milliseconds message_timeout_;
  const std::chrono::steady_clock::time_point proof_deadline_;  // for a stranger
  OnRefusal on_refusal_;
  boost::beast::flat_buffer buffer_;
  std::shared_ptr<PendingReply> pending_;  // the Reply that the handler holds refers to it weakly
  bool closed_ = false;
};

}  // namespace runjob::rendezvous
