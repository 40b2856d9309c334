#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "hostfile/allocation.hpp"
#include "launcher/messages.hpp"

namespace runjob {

/// What became of a job: each rank's end, what ended the job first, and what follows for the exit status.
/// Pure: told of events in order, asked at the end. docs/exit-status.md lists the statuses.
///
/// The rank that failed first is not always the one that ends first: a rank that fails may need long to leave, and those
/// that depend on it end meanwhile. Ranks therefore say that they are failing (rank_failing()), and the end of a rank that
/// only lost another one settles nothing as long as that other one may still be on its way out: unsettled().
class Verdict {
 public:
  /// What went wrong first. It decides the exit status and stays.
  enum class Cause {
    kNone,
    kRankFailed,
    kNotStarted,
    kNotReached,
    kNoNetwork,
    kHostLost,
    kInterrupted,
    kStartTimeout,
    kTimeLimit,
    kOutputClosed
  };

  /// `continue_on_failure`: a rank that fails does not end the job.
  Verdict(const Allocation& allocation, std::string command, bool continue_on_failure = false);

  void rank_started(int rank, std::int64_t pid);
  void rank_not_started(int rank, const StartFailed& failure);
  void rank_exited(int rank, const Exited& exited);
  /// The rank has begun anew, with a call of init(): what it said before does not count.
  void rank_joined(int rank);
  /// The rank says that it will end with an error: its `own`, or because another rank has left.
  void rank_failing(int rank, bool own, const std::string& reason);
  void host_lost(int host, const std::string& how);
  /// `why` is all that the user gets to read about it, besides the host's name.
  void host_not_reached(int host, const std::string& why);
  /// The hosts do not reach each other.
  void no_network(const Status& status);
  void interrupted(int signal);
  void start_timeout(const std::string& missing);
  void time_limit_reached(std::chrono::milliseconds limit);
  void output_closed();

  /// Whether some rank has failed or said so, and the one that failed first may not have ended yet.
  bool unsettled() const;
  /// Names the rank that failed first as far as it is known, whether it has ended or not.
  void settle();

  Cause cause() const { return first_.cause; }
  /// Whether time is up, --timeout or the start's.
  bool timed_out() const { return ending_.cause == Cause::kTimeLimit || ending_.cause == Cause::kStartTimeout; }
  /// Whether the job is to be ended before all ranks have.
  bool ends_job() const { return ending_.cause != Cause::kNone; }
  int exit_status() const;

  /// How the rank ended: "exited with status 3", "was killed by signal 9 (SIGKILL)"; "" while it runs.
  std::string how(int rank) const;
  /// Whether the rank's process runs.
  bool running(int rank) const;
  std::vector<int> running_ranks() const;

  /// "HOST: reason" for each, in the order of the hosts.
  std::vector<std::string> unreached_hosts() const;

  using StderrLines = std::function<std::vector<std::string>(int rank)>;

  /// For the user: one line on what happened, then the last lines of the failed rank's standard error, then
  /// what else failed. "" when all is well or the user ended it.
  std::string message(const StderrLines& stderr_lines) const;

  /// The status file, see docs/exit-status.md.
  std::string to_json(const std::string& job_id, const StderrLines& stderr_lines) const;

 private:
  enum class State { kNotStarted, kRunning, kOk, kFailed, kStopped, kLost, kVictim };
  struct Rank {
    State state = State::kNotStarted;
    std::int64_t pid = 0;
    std::optional<Exited> exited;
    std::optional<StartFailed> start_failed;
    bool lost_another = false;  ///< it said so
  };

  /// One thing that went wrong.
  struct Event {
    Cause cause = Cause::kNone;
    int culprit = -1;    ///< the rank, host or signal
    std::string detail;  ///< its text
  };

  Rank& at(int rank) { return ranks_.at(static_cast<std::size_t>(rank)); }
  const Rank& at(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)); }
  const std::string& host_of(int rank) const;
  void note(Event event, bool ends_job = true);
  void note_failure(int rank);
  bool culprit_may_come() const;
  bool ended_by_itself(int rank) const;
  std::string describe(const Event& event) const;
  std::string start_failure_message(int rank) const;
  std::string rank_failure_message(int rank) const;
  std::string stopped_text(const char* other) const;
  std::string other_failures() const;

  Allocation allocation_;
  std::string command_;
  bool continue_on_failure_;
  std::vector<Rank> ranks_;
  std::map<int, std::string> unreached_;  // hosts, and why
  std::vector<int> failed_;               // by themselves, in the order in which that became known
  std::vector<int> victims_;              // failed because another one had left, likewise
  int failing_ = -1;                      // the first rank that said it fails by itself
  std::string reason_;                    // what it said
  Event first_;
  Event ending_;  // what ended the job; the same as first_ unless a failure did not end it
};

}  // namespace runjob
