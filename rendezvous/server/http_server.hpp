#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "rendezvous/job_key.hpp"
#include "rendezvous/protocol.hpp"
#include "rendezvous/server/http_limits.hpp"

namespace runjob::rendezvous {

/// HTTP/1.1 with keep-alive over a Unix or a TCP socket: parses requests, calls the handler, writes the replies in
/// order. On a Unix socket, processes of this user are admitted (SO_PEERCRED). Every other peer must prove with each
/// request that it holds the job's key (auth.hpp); before that, only the header of its request is read. A reply to a
/// peer that hung up is dropped; its request is not taken back.
/// Threads  the executor's one thread; it calls the handler and must call the replies. A reply may come after
///          the server is gone.
/// Bounds   headers 16 KiB, bodies kMaxBodyBytes, and Limits; beyond them a 4xx/5xx answer and the connection
///          ends.
class HttpServer {
 public:
  using Handler = std::function<void(Request, Reply)>;

  using Limits = HttpLimits;

  /// A numeric address of this host, and a port; 0 takes any free one.
  struct TcpAddress {
    std::string address;
    int port = 0;
  };

  /// Listens on `path`, a Unix socket that must not exist yet. Without a key only processes of this user are
  /// admitted. Errors  Error(kSystem).
  HttpServer(boost::asio::any_io_executor executor, const std::string& path, Handler handler, Limits limits,
             std::optional<JobKey> key = std::nullopt);
  HttpServer(boost::asio::any_io_executor executor, const std::string& path, Handler handler);
  /// Listens on TCP. Errors  Error(kSystem); Error(kUsage) when the address is not numeric.
  HttpServer(boost::asio::any_io_executor executor, const TcpAddress& address, JobKey key, Handler handler,
             Limits limits);
  /// Closes the listener and every connection and removes the socket; replies that come later are dropped.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The TCP port that it listens on.
  int port() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the coroutines, which may outlive this object by a turn of the loop
};

}  // namespace runjob::rendezvous
