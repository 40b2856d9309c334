#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// The end of a job: the end of each rank and host, the first failure, and the cause of the job's end. Verdict fills in
/// this plain data and outcome_report.hpp turns it into text. docs/exit-status.md lists the statuses.
struct JobOutcome {
  /// The first failure. It decides the exit status and does not change.
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

  enum class RankState { kNotStarted, kRunning, kOk, kFailed, kStopped, kLost, kVictim };

  struct Rank {
    RankState state = RankState::kNotStarted;
    std::int64_t pid = 0;
    std::optional<Exited> exited;
    std::optional<StartFailed> start_failed;
    bool lost_another = false;  ///< the rank reported that it fails because another rank has left
    std::string lost_reason;    ///< the reason that it reported
  };

  /// One thing that went wrong.
  struct Event {
    Cause cause = Cause::kNone;
    int culprit = -1;    ///< the rank, host, signal or exit status
    std::string detail;  ///< the event's own text
  };

  Allocation allocation;
  std::string command;
  std::vector<Rank> ranks;
  std::map<int, std::string> unreached;  ///< hosts, each with "HOST: reason"
  std::vector<int> failed;               ///< ranks that failed by themselves, in the order in which that became known
  std::vector<int> victims;              ///< ranks that failed because another one had left, in the same order
  int failing = -1;                      ///< the first rank that reported an error of its own
  std::string reason;                    ///< the reason that it reported
  bool is_late = false;                  ///< `failing` failed no operation: the others have waited too long for it
  Event first;
  Event ending;  ///< what ended the job; the same as `first` unless a failure did not end it

  /// The rank's process runs.
  bool running(int rank) const { return ranks.at(static_cast<std::size_t>(rank)).state == RankState::kRunning; }
  /// The rank has ended, and neither well nor because it was stopped.
  bool ended_by_itself(int rank) const;
  /// How the rank ended: "exited with status 3", "was killed by signal 9 (SIGKILL)"; "" while it runs.
  std::string how(int rank) const;
  const std::string& host_of(int rank) const;
  /// runjob's exit status.
  int exit_status() const;
  /// "HOST: reason" for each host that was not reached, in the order of the hosts.
  std::vector<std::string> unreached_hosts() const;
};

}  // namespace runjob
