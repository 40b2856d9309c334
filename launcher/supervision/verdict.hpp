#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "hostfile/allocation.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/supervision/job_outcome.hpp"

namespace runjob {

/// Decides which rank failed first and what ended the job, from the events of a job in their order.
///
/// The rank that failed first is not always the rank that ends first: a rank that fails may need long to leave, and
/// ranks that depend on it end meanwhile. Ranks therefore report that they are failing (rank_failing()). The end of a
/// rank that only lost another one decides nothing while that other rank may still be on its way out: unsettled().
///
/// Example  Rank 1 raises an exception and begins to leave. Rank 0 loses its connection to rank 1 and ends first.
///          rank_failing(1, own), rank_failing(0, not own), rank_exited(0): unsettled(), because rank 1, whose failure
///          is its own, still runs. rank_exited(1): settled, rank 1 failed first. Without this last event the owner
///          calls settle() after some seconds, which names rank 1 as well.
///
/// Rules    A rank that ends with a failure of its own is named at once, unless another rank that has reported an error
///          of its own (or is late) still runs. The end of a victim names nobody at once.
///          The decision that is then open, unsettled(), is made when the last rank ends that could be the cause, or by
///          settle(). It names the first of these that there is: the rank that has reported an error of its own (or is
///          late), if it runs; ranks that wait for each other; the cut network, if no rank has failed by itself; the
///          first rank that has failed by itself; the first victim.
///          A decision does not change. What ends the job before it, such as a lost host, is the first cause itself.
/// Pure     no clock, no sockets, no processes: the owner calls settle() when a time has passed.
/// Threads  one.
class Verdict {
 public:
  using Cause = JobOutcome::Cause;

  /// `continue_on_failure`: a rank that fails does not end the job. `generations`: those of an elastic job so far.
  Verdict(const Allocation& allocation, std::string command, bool continue_on_failure = false,
          std::vector<GenerationRecord> generations = {});

  void rank_started(int rank, std::int64_t pid);
  void rank_not_started(int rank, const StartFailed& failure);
  void rank_exited(int rank, const Exited& exited);
  /// The rank called init(); earlier failure reports from it are discarded.
  void rank_joined(int rank);
  /// The rank reports that it will end with an error: its `own`, or one caused by another rank that has left. `lost`:
  /// the rank to which its connection has failed. That is the network's failure, unless `lost` turns out to have ended,
  /// or its host to be lost.
  void rank_failing(int rank, bool own, const std::string& reason, int lost = -1);
  /// Another rank reports that the job ends because an operation has waited too long for `late`.
  void rank_late(int late, const std::string& reason);
  /// A rank reports that the job ends because ranks have waited too long for each other: no rank is to blame.
  void mutual_wait(const std::string& reason);
  /// The interface by which the others reach each host, for messages.
  void hosts_reached_over(std::vector<std::string> interfaces) { outcome_.interfaces = std::move(interfaces); }
  /// `cause`: kHostLost, or kStoodStill when the host has ended its ranks because this process was silent for too long;
  /// then `how` is the whole text.
  void host_lost(int host, const std::string& how, Cause cause = Cause::kHostLost);
  /// `why` is the whole text for the user, apart from the host's name.
  void host_not_reached(int host, const std::string& why);
  /// The hosts cannot reach each other.
  void no_network(const Status& status);
  void interrupted(int signal);
  void start_timeout(const std::string& missing);
  void time_limit_reached(std::chrono::milliseconds limit);
  /// Standard output cannot be written. `error`: errno; EPIPE if its reader is gone, as after `| head`.
  void output_failed(int error);
  /// An elastic job cannot form another generation. This replaces the failures that led to it.
  void cannot_go_on(const std::string& why);

  /// Some rank has failed or reported a failure, and the rank that failed first may not have ended yet.
  bool unsettled() const;
  /// Decides, from what is known now, which rank failed first, even if that rank has not ended.
  void settle();

  Cause cause() const { return outcome_.first_failure.cause; }
  /// The job is to be ended before all ranks have.
  bool ends_job() const { return outcome_.ending.cause != Cause::kNone; }
  std::vector<int> running_ranks() const;
  /// Everything that is known so far. outcome_report.hpp makes text of it.
  const JobOutcome& outcome() const { return outcome_; }

 private:
  using State = JobOutcome::RankState;

  JobOutcome::Rank& at(int rank) { return outcome_.ranks.at(static_cast<std::size_t>(rank)); }
  void note(JobOutcome::Event event, bool ends_job = true);
  void note_failure(int rank);
  void note_lost_connection(std::pair<int, int> ranks);

  const bool continue_on_failure_;
  JobOutcome outcome_;
};

}  // namespace runjob
