#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/supervision/generation_record.hpp"

namespace runjob {

/// How a process ended: "exited with status 3", "was killed by signal 9 (SIGKILL)".
std::string end_text(const Exited& end);
/// The same for a process that does not exist: "could not be started: Resource temporarily unavailable".
std::string end_text(const StartFailed& failure);

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
    kNetworkCut,
    kMutualWait,
    kHostLost,
    kStoodStill,
    kInterrupted,
    kStartTimeout,
    kTimeLimit,
    kOutputClosed,
    kOutputFailed,
    kCannotGoOn  ///< an elastic job
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

  /// A failure, or another event that ends a job.
  struct Event {
    Cause cause = Cause::kNone;
    int number = -1;     ///< by the cause: of the rank or the host, of the signal, or the exit status
    std::string detail;  ///< the event's own text
  };

  /// The announcement that a rank fails, before it has ended.
  struct Report {
    int rank = -1;         ///< the rank that fails; -1: there is no report
    std::string reason;    ///< for people
    bool is_late = false;  ///< other ranks reported it, because they have waited too long for the rank's operation
  };

  Allocation allocation;
  std::string command;
  std::vector<Rank> ranks;
  std::map<int, std::string> unreached;  ///< hosts, each with "HOST: reason"
  std::vector<int> failed;               ///< ranks that failed by themselves, in the order in which that became known
  std::vector<int> victims;              ///< ranks that failed because of others, in the same order
  Report report;                         ///< the first one of an error of a rank's own
  std::string mutual_wait;               ///< the ranks' report that they wait for each other; empty if they do not
  /// Each is a rank, and the rank to which it reported that its connection is lost. No pair comes twice.
  std::vector<std::pair<int, int>> lost_connections;
  std::pair<int, int> cut{-1, -1};      ///< two ranks whose hosts do not reach each other (kNetworkCut)
  std::vector<std::string> interfaces;  ///< by host: the interface by which the others reach it; empty if not known
  std::vector<GenerationRecord> generations;  ///< of an elastic job, all of them so far
  Event first_failure;
  Event ending;  ///< the event that ended the job: another one than the first failure if that did not end it

  /// The time is up: that of --timeout, or that of the start.
  bool timed_out() const { return ending.cause == Cause::kTimeLimit || ending.cause == Cause::kStartTimeout; }
  /// The rank's process runs.
  bool running(int rank) const { return ranks.at(static_cast<std::size_t>(rank)).state == RankState::kRunning; }
  /// The rank has ended, and neither well nor because it was stopped.
  bool ended_by_itself(int rank) const;
  /// How the rank ended, as end_text() has it; "" while it runs.
  std::string how(int rank) const;
  const std::string& host_of(int rank) const;
  /// "s1 and s2 do not reach each other over ib0", for the hosts of `cut`.
  std::string cut_network() const;
  /// runjob's exit status.
  int exit_status() const;
  /// "HOST: reason" for each host that was not reached, in the order of the hosts.
  std::vector<std::string> unreached_hosts() const;

 private:
  int status_of(int rank) const;
};

}  // namespace runjob
