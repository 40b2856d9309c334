#include "rendezvous/client.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "rendezvous/http_connection.hpp"
#include "rendezvous/target.hpp"

namespace runjob::rendezvous {
namespace {

using Milliseconds = Client::Milliseconds;

/// The client waits this much longer than the service, so that the service's text, which names the missing ranks, comes
/// first.
constexpr Milliseconds kMargin{5000};
/// For requests that the service answers at once.
constexpr Milliseconds kPrompt{30000};

/// A timeout that can be added to the clock.
Milliseconds bounded(Milliseconds timeout) {
  constexpr Milliseconds kLongest = std::chrono::hours(24 * 365);
  return std::clamp(timeout, Milliseconds(0), kLongest);
}

Errc code_of(int status) {
  switch (status) {
    case 401:
    case 403:
      return Errc::kAuth;
    case 408:
      return Errc::kTimeout;
    case 410:
      return Errc::kAborted;
    case 503:
      return Errc::kUnavailable;
  }
  return Errc::kProtocol;
}

std::string segment(std::string_view name, std::string_view what) {
  if (name.empty() || name.size() > kMaxNameBytes)
    throw Error(Errc::kInvalidArgument,
                fmt::format("{}: expected 1 to {} bytes, found {}", what, kMaxNameBytes, name.size()));
  return percent_encode(name);
}

std::string key_path(std::string_view scope, std::string_view key) {
  return fmt::format("/v1/kv/{}/{}", segment(scope, "a scope"), segment(key, "a key"));
}

std::optional<JobKey> key_in(const std::optional<std::string>& file) {
  return file ? std::optional<JobKey>(JobKey::read_file(*file)) : std::nullopt;
}

std::uint64_t random_bits() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

class Client::Connection {
 public:
  Connection(std::string_view address, int rank, const std::optional<std::string>& key_file)
      : http_(address, key_in(key_file)), rank_(rank), caller_(random_bits()) {}

  /// The answer when its status is 200 or `also`. Throws an Error with the service's text for any other status.
  Response ask(const char* method, std::string target, std::string_view body, Milliseconds timeout, int also = 200) {
    if (body.size() > kMaxBodyBytes)
      throw Error(Errc::kInvalidArgument, fmt::format("rendezvous {}: {} {}: {} bytes are over the limit of {}",
                                                      http_.address(), method, target, body.size(), kMaxBodyBytes));
    const Request request{method, std::move(target), std::string(body), rank_};
    const auto deadline = std::chrono::steady_clock::now() + bounded(timeout) + kMargin;
    Response response = http_.exchange(request, deadline);
    if (response.status == 200 || response.status == also) return response;
    const std::string text = error_text(response.body);
    if (response.status == 408 || response.status == 410) throw Error(code_of(response.status), text);
    throw Error(code_of(response.status), fmt::format("rendezvous {}: {} {}: {} {}", http_.address(), method,
                                                      request.target, response.status, text));
  }

  /// `parameters`: more of the query, empty or starting with '&'. The call number makes it safe to send the
  /// request again when the connection broke: the service then knows that it is the same one.
  Response gather(std::string_view kind, std::string_view name, std::string_view blob, std::string_view parameters,
                  Milliseconds timeout) {
    timeout = bounded(timeout);
    return ask(
        "POST",
        fmt::format("/v1/{}/{}?wait={}ms&call={:x}.{}{}{}", kind, segment(name, "a name"), timeout.count(), caller_,
                    ++calls_, parameters, generation_ < 0 ? "" : fmt::format("&generation={}", generation_)),
        blob, timeout);
  }

  int rank() const { return rank_; }
  void set_generation(int generation) { generation_ = generation; }

 private:
  HttpConnection http_;
  int rank_;
  int generation_ = -1;  // -1: the job has no generations, or this process is in none
  std::uint64_t caller_;
  std::uint64_t calls_ = 0;
};

Client::Client(std::string_view address, int rank, const std::optional<std::string>& key_file)
    : connection_(std::make_unique<Connection>(address, rank, key_file)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

JoinReply Client::join(Milliseconds timeout) {
  const JoinRequest request{connection_->rank(), ::getpid(), std::nullopt};
  return join_reply_from_json(connection_->ask("POST", "/v1/join", to_json(request), timeout).body);
}

void Client::set_generation(int generation) {
  connection_->set_generation(generation);
}

JoinReply Client::join_next(JoinRequest::Ready ready) {
  connection_->set_generation(-1);
  const JoinRequest request{connection_->rank(), ::getpid(), std::move(ready)};
  JoinReply reply =
      join_reply_from_json(connection_->ask("POST", "/v1/join", to_json(request), Milliseconds::max()).body);
  connection_->set_generation(reply.generation);
  return reply;
}

std::optional<Notice> Client::notice(std::int64_t after, Milliseconds wait) {
  wait = bounded(wait);
  const std::string target = fmt::format("/v1/elastic/notice?after={}&wait={}ms", after, wait.count());
  const Response response = connection_->ask("GET", target, "", wait, 404);
  if (response.status == 404) return std::nullopt;
  return notice_from_json(response.body);
}

std::vector<std::string> Client::gather(std::string_view name, std::string_view blob, Milliseconds timeout) {
  return decode_blobs(connection_->gather("gather", name, blob, "", timeout).body);
}

std::vector<std::string> Client::gather(std::string_view name, std::string_view blob, int count, int index,
                                        Milliseconds timeout) {
  const std::string parameters = fmt::format("&count={}&index={}", count, index);
  return decode_blobs(connection_->gather("gather", name, blob, parameters, timeout).body);
}

void Client::barrier(std::string_view name, Milliseconds timeout) {
  connection_->gather("barrier", name, "", "", timeout);
}

std::optional<std::string> Client::get(std::string_view scope, std::string_view key, Milliseconds wait) {
  wait = bounded(wait);
  const Response response =
      connection_->ask("GET", fmt::format("{}?wait={}ms", key_path(scope, key), wait.count()), "", wait + kPrompt, 404);
  if (response.status == 404) return std::nullopt;
  return response.body.str();
}

void Client::put(std::string_view scope, std::string_view key, std::string_view value) {
  connection_->ask("PUT", key_path(scope, key), value, kPrompt);
}

void Client::remove(std::string_view scope, std::string_view key) {
  connection_->ask("DELETE", key_path(scope, key), "", kPrompt);
}

void Client::failing(const Failing& failing) {
  connection_->ask("POST", "/v1/failing", to_json(failing), Milliseconds(0));  // an ending rank must not wait for long
}

std::string Client::status() {
  return connection_->ask("GET", "/v1/status", "", kPrompt).body;
}

}  // namespace runjob::rendezvous
