#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// A rank's blocking client of the rendezvous, over one keep-alive connection. If the connection breaks before an
/// answer arrives, the request is sent once more on a new one. That is safe: putting, getting and removing a value give
/// the same result twice, and gathers and barriers carry a call number by which the service recognises a repetition.
/// Threads  one at a time; starts none.
/// Errors   every call throws Error: kConnect (address and reason), kTimeout (the service's text naming the missing
///          ranks), kAborted (the job is over), kAuth (not admitted, a key file that cannot be used, or an answer
///          without a valid signature), kUnavailable (a limit of the service is reached), kProtocol (an invalid answer,
///          or a rejected request), kInvalidArgument (a name or blob over its limit), kUsage (a bad address).
class Client {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// `address` is the value of RUNJOB_RENDEZVOUS: "unix:PATH" or "http://HOST:PORT". `key_file` is the file of the
  /// job's key (RUNJOB_JOB_KEY_FILE), required for http://; with it every request is signed. Does not connect yet.
  Client(std::string_view address, int rank, const std::optional<std::string>& key_file = std::nullopt);
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  JoinReply join(Milliseconds timeout);
  /// Elastic jobs: from now on each request carries `generation`, of which this process is a member.
  void set_generation(int generation);

  /// Elastic jobs: leaves the present generation and waits for the next one that this process belongs to, for as long
  /// as the launcher does. From then on each request carries that generation.
  /// Errors  also kAborted when this process is not to be a member of another generation; the text tells why.
  JoinReply join_next(JoinRequest::Ready ready);
  /// Elastic jobs: a notice with a larger sequence number than `after`; nullopt when `wait` has passed without one.
  std::optional<Notice> notice(std::int64_t after, Milliseconds wait);

  /// Gives `blob` and returns the blobs of all participants, by index. There are `count` participants with distinct
  /// `index`; by default all ranks.
  /// Cost  one round trip.
  std::vector<std::string> gather(std::string_view name, std::string_view blob, Milliseconds timeout);
  std::vector<std::string> gather(std::string_view name, std::string_view blob, int count, int index,
                                  Milliseconds timeout);

  void barrier(std::string_view name, Milliseconds timeout);

  /// The value, after waiting for it for at most `wait`; nullopt if it does not exist by then.
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
