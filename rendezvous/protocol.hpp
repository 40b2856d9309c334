#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The protocol between a rank and the rendezvous: HTTP/1.1 requests on versioned paths, over any stream.
/// docs/developers/rendezvous.md describes the same for readers of the wire.
///
///   POST   /v1/join                  JSON {"rank","pid"}  -> JSON, see JoinReply
///   POST   /v1/gather/<name>         one blob             -> CBOR array of all blobs, by index
///   POST   /v1/barrier/<name>        empty                -> empty, once all have come
///   GET    /v1/kv/<scope>/<key>                           -> the value's bytes, or 404
///   PUT    /v1/kv/<scope>/<key>      raw bytes            -> empty
///   DELETE /v1/kv/<scope>/<key>                           -> empty, also when there was none
///   POST   /v1/failing               JSON {"own","reason","late","lost","mutual"} -> empty; see Failing
///   GET    /v1/elastic/notice        empty                -> JSON, see Notice; waits for a newer one than `after`
///   GET    /v1/status                                     -> JSON: what the job waits for
///
/// Queries: gather and barrier take `count`, `index`, `wait` and `call`; GET of a value takes `wait`; a notice takes
/// `after`. In an elastic job each request of a generation's member has `generation`, and kRankHeader is the number of
/// the caller's process, which never changes, in place of its rank.
/// Names are one path segment each, percent-encoded, any bytes. `count` and `index` default to the job's size
/// and the caller's rank; `wait` is in seconds and defaults to the job's start timeout for gathers and
/// barriers, to 0 for a value. A gather or barrier is forgotten when it has been answered, so that its name can be used
/// again. When one caller's wait runs out, it ends for all callers, because it cannot become complete. `call`
/// (optional) identifies one call of one rank: a call that is sent again because a connection broke does not count
/// twice and gets the same answer.
///
/// Errors are JSON {"error": "..."} with a 4xx or 5xx status: 400 malformed, 401 not signed with the job's
/// key, 403 not admitted, 404 no such
/// path or key, 405 no such method on this path, 408 a wait ran out (the text names the missing ranks), 409 two callers
/// with one index or different counts, 410 the job or the request's generation is over, 413 body too large, 431 headers
/// too large, 503 a bound of the service is reached.
namespace runjob::rendezvous {

/// The header with the number of the process that sends a request, which in a job of fixed size is its rank.
inline constexpr char kRankHeader[] = "Runjob-Rank";

inline constexpr std::size_t kMaxBodyBytes = 16u << 20;     ///< one request or value
inline constexpr std::size_t kMaxNameBytes = 512;           ///< a gather's name, a scope, a key
inline constexpr std::size_t kMaxStoredBytes = 256u << 20;  ///< all values and blobs held by one service

struct Request {
  std::string method;  ///< "GET", "PUT", "POST", "DELETE"
  std::string target;  ///< path and query, percent-encoded: "/v1/kv/scope/key?wait=2"
  std::string body;
  /// The number of the process that sends it, from kRankHeader; -1 when not given. In a job of fixed size, and for a
  /// Service, it is the rank.
  int process = -1;
};

using Digest = std::array<unsigned char, 32>;  ///< SHA-256

/// Immutable bytes that copies share: the one answer of a gather goes to every rank.
/// Threads  all copies on one.
class Body {
 public:
  Body() = default;
  Body(std::string bytes) : shared_(std::make_shared<Shared>(Shared{std::move(bytes), std::nullopt})) {}
  Body(const char* text) : Body(std::string(text)) {}

  const std::string& str() const {
    static const std::string empty;
    return shared_ ? shared_->bytes : empty;
  }
  /// Computed once for all copies.
  Digest digest() const;
  operator const std::string&() const { return str(); }
  std::size_t size() const { return str().size(); }
  bool empty() const { return str().empty(); }
  bool operator==(const Body& other) const { return str() == other.str(); }

 private:
  struct Shared {
    const std::string bytes;
    std::optional<Digest> digest;  // set by the first call of digest()
  };
  std::shared_ptr<Shared> shared_;  // owners: every Response that carries it
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Body body;
};

/// Called exactly once, possibly before the call that received it returns.
using Reply = std::function<void(Response)>;

/// One rank's place in the job. The field names are the JSON keys.
struct Place {
  int rank = 0, size = 1, local_rank = 0, local_size = 1, cross_rank = 0, cross_size = 1;
  int generation = 0;
  std::string hostname;               ///< the host's name as the job's allocation spells it
  double start_timeout_seconds = 30;  ///< how long to wait for other ranks during init

  bool operator==(const Place&) const = default;
};

/// Which rank is on which host: the same for all of a job, or of a generation.
struct Topology {
  std::vector<int> hosts;              ///< for each rank the index of its host
  std::vector<std::string> hostnames;  ///< names of the hosts, by host index
  /// Elastic jobs, for processes that were ready: each rank's JoinRequest::Ready::commit. Rank 0 has the newest.
  std::vector<std::int64_t> commits = {};

  bool operator==(const Topology&) const = default;
};

/// A rank's request for its place.
struct JoinRequest {
  /// A process of an elastic job has entered elastic.run() and waits for the next generation that it belongs to.
  struct Ready {
    std::int64_t commit = -1;  ///< the number of the newest state that it can restore; -1: it has none
    std::string reason;        ///< why its generation cannot go on, for people; "" when it only wants the next one
    std::int64_t steps = -1;   ///< how many steps it has begun since that state; less than 0: unknown

    bool operator==(const Ready&) const = default;
  };

  int rank = 0;  ///< in an elastic job the number of the process
  long pid = 0;
  std::optional<Ready> ready;

  bool operator==(const JoinRequest&) const = default;
};

/// Answer to a join.
struct JoinReply : Place, Topology {
  /// Elastic jobs: the place is the one that the process is meant to get. It belongs to no generation yet and connects
  /// to nobody, until it has joined with JoinRequest::ready.
  bool waiting = false;

  bool operator==(const JoinReply&) const = default;
};

/// The state of an elastic job as its processes need to know it. A later notice contains all that an earlier one did.
struct Notice {
  std::int64_t sequence = 0;  ///< grows with each notice
  int ended = -1;             ///< generations up to this one are over: their collectives fail
  std::string reason;         ///< why `ended` is over, for people
  int outdated = -1;          ///< generations up to this one are to be left at the next commit: hosts have changed
  bool only_added = true;     ///< that change has only added processes
  std::vector<int> leaving;   ///< the numbers of the processes that are to end, with status 0, at their next commit

  bool operator==(const Notice&) const = default;
};

/// `hosts` as runs [first, step, count]: a job whose ranks fill one host after the other, or go round the
/// hosts, has few of them.
std::string to_json(const Topology& topology);
/// The answer to a join from its parts; `topology` is encoded once for all ranks of a job.
std::string join_reply(const Place& place, const std::string& topology, bool waiting = false);
std::string to_json(const JoinRequest& request);
std::string to_json(const Notice& notice);
/// Errors  Error(kProtocol) when `text` is not such a JSON document; this and the two below.
JoinRequest join_request_from_json(const std::string& text);
Notice notice_from_json(const std::string& text);
JoinReply join_reply_from_json(const std::string& text);

/// The report of a rank that is likely to end with an error. The launcher names the rank that failed first. The order
/// in which processes end does not show it, because a rank that fails may need long to end.
struct Failing {
  bool own = true;      ///< an error of its own; false: another rank has left, and its operations cannot be completed
  std::string reason;   ///< for people
  int late = -1;        ///< the rank for which an operation waited so long that the job ends; -1 for none
  int lost = -1;        ///< the rank to which the connection has failed, with or without its end; -1 for none
  bool mutual = false;  ///< ranks have waited so long for each other that the job ends; then `own` as well
};

std::string to_json(const Failing& failing);
/// Errors  Error(kProtocol) when `text` is not such a JSON document.
Failing failing_from_json(const std::string& text);

/// The body of a gather's answer: CBOR (RFC 8949), an array of byte strings.
std::string encode_blobs(const std::vector<std::string>& blobs);
/// Errors  Error(kProtocol).
std::vector<std::string> decode_blobs(const std::string& body);

/// Bytes of `message` that are not UTF-8 become U+FFFD.
Response error_response(int status, const std::string& message);
/// The text of an error_response, or all of `body` when it is not one.
std::string error_text(const std::string& body);

}  // namespace runjob::rendezvous
