#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// HTTP/1.1 with keep-alive over a Unix socket (the TCP front will share the session code): parses requests,
/// hands them on, writes the replies in order. Only processes of this user are admitted (SO_PEERCRED). A
/// reply to a peer that hung up is dropped; its request is not taken back.
/// Threads  the executor's one thread; it calls the handler and must call the replies. A reply may come after
///          the server is gone.
/// Bounds   headers 16 KiB, bodies kMaxBodyBytes, and Limits; beyond them a 4xx/5xx answer and the connection
///          ends.
class HttpServer {
 public:
  using Handler = std::function<void(Request, Reply)>;

  struct Limits {
    std::size_t connections = 1024;
    /// For a request to arrive once it has begun, and for a reply to be taken. Idle connections may stay.
    std::chrono::milliseconds message_timeout{30000};
  };

  /// Listens on `path`, a Unix socket that must not exist yet. Errors  Error(kSystem).
  HttpServer(boost::asio::any_io_executor executor, const std::string& path, Handler handler, Limits limits);
  HttpServer(boost::asio::any_io_executor executor, const std::string& path, Handler handler);
  /// Closes the listener and every connection and removes the socket; replies that come later are dropped.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the coroutines, which may outlive this object by a turn of the loop
};

}  // namespace runjob::rendezvous
