#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "runtime/life/life_message.hpp"
#include "runtime/life/stall_verdict.hpp"
#include "runtime/negotiation/members.hpp"

namespace runjob::runtime {

/// Decides how the job ends, out of what the ranks report. Reports in, decisions out; no sockets, no clock, no threads.
///
/// Phases   running -> leaving, with the first goodbye: kLeaving. Leaving -> ended, when every rank has drained or is
///          gone: kReleased. Running or leaving -> ended, when a rank is lost that has not reported a goodbye, or when
///          one that has cuts off what others' devices do: kAbort. Nothing is decided after the end.
/// Failures a failed backend alone is only a suspicion: the loss that caused it explains more, and usually follows at
///          once. give_up() decides without it. A connection whose bytes were changed explains other failures, and
///          takes the place of one that was reported first.
/// Stalls   an operation that has waited too long does not show which rank is to blame: kAsk has every rank report in
///          what it waits. The decision is made when all have answered, or by give_up().
/// Sets     kGiveUp ends one process set of these ranks, and nothing else: the first reason counts. Of set 0 it is an
///          abort at once, which no loss explains better.
/// Threads  one.
class JobLife {
 public:
  explicit JobLife(Members members) : members_(std::move(members)), waits_(members_.size()) {}

  /// Reports about the timeline change nothing.
  void receive(int rank, const LifeReport& report);
  /// The connection to `rank` ended. `error`: errno; 0 if its process has closed it.
  void lost(int rank, int error = 0);

  /// A failure was reported, and nothing has been decided for it yet.
  bool is_suspicious() const { return phase_ != Phase::kEnded && !suspicion_.ok(); }
  /// Decides for the first failure that was reported.
  void give_up();

  /// The decisions since the last call, in order.
  std::vector<LifeDecision> take();

 private:
  enum class Phase { kRunning, kLeaving, kEnded };

  bool explains_more(const Status& status) const;
  void goodbye(int rank, const Status& why);
  void drained(int rank);
  void stalled(int rank, const LifeReport& report);
  void answered(int rank, const LifeReport& report);
  void decide_on_stall();
  void given_up(const LifeReport& report);
  void enter(Phase phase, LifeDecision::Type type, Status status);

  const Members members_;
  Phase phase_ = Phase::kRunning;
  std::set<int> departing_;  ///< ranks that have sent a goodbye
  std::set<int> drained_;    ///< ranks on which nothing runs any more
  Status suspicion_;
  std::optional<Stall> stall_;            ///< set when it is the suspicion
  std::vector<std::vector<Wait>> waits_;  ///< by rank: the answers
  std::set<int> answered_;
  std::set<int> given_up_;  ///< process sets
  std::vector<LifeDecision> decisions_;
};

}  // namespace runjob::runtime
