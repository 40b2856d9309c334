#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// A rank's blocking view of the rendezvous, over one keep-alive connection. When that breaks before an
/// answer is there, the request is sent once more on a new one. That is safe: a value is put, got and removed
/// with the same result twice, and gathers and barriers carry a call number by which the service knows a
/// repeated one.
/// Threads  one at a time; starts none.
/// Errors   every call throws Error: kConnect (address and reason), kTimeout (the service's text naming who
///          is missing), kAborted (the job is over), kAuth (not admitted, a key file that
///          cannot be used, or an answer that somebody else gave), kUnavailable (a bound of the
///          service is reached), kProtocol (an answer that makes no sense, or a request refused),
///          kInvalidArgument (a name or blob over its bound), kUsage (a bad address).
class Client {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// `address`: "unix:PATH" or "http://HOST:PORT" (the value of RUNJOB_RENDEZVOUS). `key_file`: of the job's
  /// key (RUNJOB_JOB_KEY_FILE), needed for http://; with it everything is signed. Does not connect yet.
  Client(std::string_view address, int rank, const std::optional<std::string>& key_file = std::nullopt);
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  JoinReply join(Milliseconds timeout);

  /// Gives `blob` and returns all of them, by index. `count` participants with distinct `index`; default: all
  /// ranks.
  /// Cost  one round trip.
  std::vector<std::string> gather(std::string_view name, std::string_view blob, Milliseconds timeout);
  std::vector<std::string> gather(std::string_view name, std::string_view blob, int count, int index,
                                  Milliseconds timeout);

  void barrier(std::string_view name, Milliseconds timeout);

  /// The value, waiting for it up to `wait`; nullopt when it is not there by then.
  std::optional<std::string> get(std::string_view scope, std::string_view key, Milliseconds wait = Milliseconds(0));
  void put(std::string_view scope, std::string_view key, std::string_view value);
  void remove(std::string_view scope, std::string_view key);

  void failing(const Failing& failing);

  /// The JSON document of GET /v1/status.
  std::string status();

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace runjob::rendezvous
