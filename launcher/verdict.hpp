#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/messages.hpp"

namespace runjob {

/// What became of a job: each rank's end, what ended the job first, and what follows for the exit status.
/// Pure: told of events in order, asked at the end. docs/exit-status.md lists the statuses.
class Verdict {
 public:
  /// Why the job ended before all ranks had. The first cause stays.
  enum class Cause {
    kNone,
    kRankFailed,
    kNotStarted,
    kNotReached,
    kHostLost,
    kInterrupted,
    kStartTimeout,
    kOutputClosed
  };

  Verdict(const Allocation& allocation, std::string command);

  void rank_started(int rank, std::int64_t pid);
  void rank_not_started(int rank, const StartFailed& failure);
  void rank_exited(int rank, const Exited& exited);
  void host_lost(int host, const std::string& how);
  /// `why` is all that the user gets to read about it, besides the host's name.
  void host_not_reached(int host, const std::string& why);
  void interrupted(int signal);
  void start_timeout(const std::string& missing);
  void output_closed();

  /// Other than kNone: the job is to be ended.
  Cause cause() const { return cause_; }
  int exit_status() const;

  /// How the rank ended: "exited with status 3", "was killed by signal 9 (SIGKILL)"; "" while it runs.
  std::string how(int rank) const;
  /// Whether the rank's process runs.
  bool running(int rank) const;

  /// "HOST: reason" for each, in the order of the hosts.
  std::vector<std::string> unreached_hosts() const;

  using StderrLines = std::function<std::vector<std::string>(int rank)>;

  /// For the user: one line on what happened, then the last lines of the failed rank's standard error. ""
  /// when all is well or the user ended it.
  std::string message(const StderrLines& stderr_lines) const;

  /// The status file, see docs/exit-status.md.
  std::string to_json(const std::string& job_id, const StderrLines& stderr_lines) const;

 private:
  enum class State { kNotStarted, kRunning, kOk, kFailed, kStopped, kLost };
  struct Rank {
    State state = State::kNotStarted;
    std::int64_t pid = 0;
    std::optional<Exited> exited;
    std::optional<StartFailed> start_failed;
  };

  Rank& at(int rank) { return ranks_.at(static_cast<std::size_t>(rank)); }
  const Rank& at(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)); }
  const std::string& host_of(int rank) const;
  bool set_cause(Cause cause);
  std::string start_failure_message() const;

  Allocation allocation_;
  std::string command_;
  std::vector<Rank> ranks_;
  Cause cause_ = Cause::kNone;
  int culprit_ = -1;    // the rank, host or signal of the cause
  std::string detail_;  // its text
  std::map<int, std::string> unreached_;
};

}  // namespace runjob
