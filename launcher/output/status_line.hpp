#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// How far the start of a job has come, in one line for people:
///
///     hosts: 3 of 4 ready, waiting for s2 (connecting)
///     ranks: 12 of 16 started, waiting for ranks 3, 7 on s2
///     init: 13 of 16 ranks, waiting for rank 3 on s2, rank 4 on s3
///
/// Pure: the owner reports events and gets the line.
class StatusLine {
 public:
  /// The text between a host and its ranks.
  enum class HostPhase { kWaiting, kResolving, kConnecting, kStartingAgent, kReady };

  explicit StatusLine(const Allocation& allocation);

  /// A host begins in kWaiting: for its turn.
  void host(int host, HostPhase phase);
  /// Ranks outside of the allocation, which an elastic job starts later, are ignored.
  void rank_started(int rank);
  void rank_joined(int rank);
  /// It has ended, or could not be started.
  void rank_ended(int rank);

  /// True if there is a line. There is none if all ranks run and none or all of them have called init(), or if a rank
  /// has ended.
  /// Cost  constant, while text() looks at every rank.
  bool waiting() const;
  /// "" when nothing is waited for.
  std::string text() const;

 private:
  enum class RankPhase { kNotStarted, kStarted, kJoined };

  std::string hosts_text() const;
  /// "waiting for ranks 3, 7 on s2, rank 4 on s3": those that are in `phase`.
  std::string waiting_for(RankPhase phase) const;

  Allocation allocation_;
  std::vector<HostPhase> hosts_;
  std::vector<RankPhase> ranks_;
  std::size_t ready_ = 0, started_ = 0, joined_ = 0;  // counts of hosts and ranks
  bool ended_ = false;
};

}  // namespace runjob
