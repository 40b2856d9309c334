#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rendezvous/server/answers.hpp"
#include "rendezvous/server/roster.hpp"

namespace runjob::rendezvous {

/// One caller's part in a gather or barrier.
struct Arrival {
  int rank = -1;  ///< -1 when unknown
  int count = 1;
  int index = 0;
  std::string blob;
  std::string call;  ///< see protocol.hpp
  std::chrono::steady_clock::time_point deadline;
  Reply reply;
};

/// The open gathers and barriers of a job. A barrier is a gather whose answer is empty.
/// Owner    the Service, which outlives it with `roster` and `stored`.
class GatherTable {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Kind { kGather, kBarrier };

  GatherTable(const Roster& roster, StoredBytes& stored);

  Answers arrive(Kind kind, const std::string& name, Arrival arrival, TimePoint now);
  Answers expire(TimePoint now);
  Answers close(const Response& response);
  TimePoint next_deadline() const;

  /// For GET /v1/status: the first ten open ones, each with the ranks that are missing.
  nlohmann::json to_json(TimePoint now) const;
  std::size_t size() const { return open_.size(); }

 private:
  struct Gather {
    Kind kind;
    int count;
    TimePoint first_arrival;
    TimePoint deadline;
    std::map<int, Arrival> arrivals;  // by index
  };
  using Open = std::map<std::string, Gather>;  // by label: "gather 'x'"

  /// The last call of a rank that was answered, in case the connection broke before the answer arrived.
  struct Answered {
    std::string call;
    std::size_t share = 0;             // of the answer's bytes in kept_bytes_
    std::optional<Response> response;  // unless there was no room to keep it
  };

  Answers repeat_answered(const std::string& label, Arrival arrival);
  Answers repeat_open(const std::string& label, Arrival& before, Arrival arrival);
  Answers finish(Open::iterator gather);
  Answers end(Open::iterator gather, const Response& response);
  void remember(const Arrival& arrival, const Response& response, std::size_t share);
  std::string missing(const std::string& label, const Gather& gather, TimePoint now) const;

  const Roster& roster_;
  StoredBytes& stored_;
  Open open_;
  std::set<std::pair<TimePoint, std::string>> deadlines_;
  std::vector<Answered> answered_;  // by rank
  std::size_t kept_bytes_ = 0;
};

}  // namespace runjob::rendezvous
