#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// One rank as the service knows it, to name the ranks that are missing.
struct Member {
  std::string host;  ///< name of its host
};

/// Answers the requests of protocol.hpp for one job. Transport-free: the agents' relay and an HTTP listener
/// both call handle(). Passive: it has no clock and no thread; time comes in with each call, and the owner
/// calls expire() at next_deadline().
/// Owner    the launcher's job, for as long as the job lives.
/// Threads  one; a Reply may be called from within any member function, and may call them again.
/// Bounds   bodies, names and stored bytes as in protocol.hpp; a request beyond them is refused, not dropped.
class Service {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Placement = std::function<std::string(int rank)>;  ///< a join_reply()

  /// `start_timeout`: the longest time that the first rank waits at start-up for the others (see overdue()), and the
  /// time for gathers and barriers that give none. `placement`: answers joins. Without it they are refused (404),
  /// because agents answer them.
  Service(std::vector<Member> members, std::chrono::milliseconds start_timeout, Placement placement = {});
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Answers `request` through `reply`, at once or when what it waits for is there.
  void handle(Request request, TimePoint now, Reply reply);

  /// Calls `listener` for each rank that reports a failure, before that rank gets its answer.
  void on_failing(std::function<void(int rank, const Failing& failing)> listener);

  /// Events of a rank's process, which the launcher reports.
  void rank_started(int rank, long pid, TimePoint now);
  void rank_joined(int rank, TimePoint now);  ///< the agents answer joins themselves and report them here
  /// `how`: "status 0", "signal 9 (Killed)".
  void rank_exited(int rank, const std::string& how, TimePoint now);

  /// Ends every wait with 410 and refuses what comes later.
  void close(const std::string& reason);

  /// The time at which expire() has to be called; TimePoint::max() when no wait is open.
  TimePoint next_deadline() const;
  /// Ends the waits whose time has passed with 408 (values: 404).
  void expire(TimePoint now);

  /// The ranks that the job waits for, or "" when there are none. Some rank that still runs has joined, and another one
  /// has not within the start timeout, or has exited without joining: "rank 13 on s4 has not called init() for 20
  /// s (pid 812)". One line per missing rank, at most ten and then a count.
  std::string overdue(TimePoint now) const;

  /// The document of GET /v1/status.
  std::string status_json(TimePoint now) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace runjob::rendezvous
