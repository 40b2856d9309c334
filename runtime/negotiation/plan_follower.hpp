#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "runtime/negotiation/control_message.hpp"
#include "runtime/negotiation/held_requests.hpp"
#include "runtime/negotiation/plans/repeating_cycle.hpp"
#include "runtime/negotiation/plans/step_plan.hpp"

namespace runjob::runtime {

/// Everything about plans on one rank. When a training step repeats, all ranks come to the same plan for it: buckets of
/// operations that are announced with one hash each. A rank holds a request back until the bucket that it belongs to is
/// complete.
///
/// Agreement  the plan itself is made, changed and ended in end_round() alone, out of calls that every rank makes in
///            the same order: agreed(), interrupted(), forgotten() and end_plan(). So all ranks have the same plan in
///            every round.
/// Departing  release() ends the holding for the current step. Held requests change when an operation is announced, and
///            never what the ranks agree on.
/// Time       has no clock of its own, other than that of hold().
/// Threads    one at a time.
class PlanFollower {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = StepPlan::Id;
  using Bucket = std::uint32_t;  ///< a bucket of the current plan, by its hash

  struct Settings {
    std::size_t bucket_bytes = 0;               ///< the least that a bucket should have; 0 for no plans
    std::chrono::microseconds patience{20000};  ///< how long requests are held after the last new one
  };

  explicit PlanFollower(const Settings& settings) : settings_(settings) {}
  PlanFollower(const PlanFollower&) = delete;  ///< held_ points to plan_
  PlanFollower& operator=(const PlanFollower&) = delete;

  // The requests of this rank.

  bool has_plan() const { return !plan_.buckets().empty(); }
  /// Takes the first of `requests`, that of an operation of the plan. False when it is to be announced by itself.
  bool hold(Id id, std::list<Request>& requests) { return held_.hold(id, requests); }
  /// An operation was announced without submission: this rank departs from the plan if it belongs to it.
  void announced_alone(Id id) { held_.announced_alone(id); }
  std::size_t held() const { return held_.size(); }
  bool holds_unnamed() const { return held_.holds_unnamed(); }
  bool has_full() const { return held_.has_full(); }
  /// The complete bucket that is to be announced now; it is not held any more.
  Bucket take_full() { return plan_.buckets()[held_.take_full()].hash; }
  /// Requests that the next bucket lacks; nullopt while nothing is held for one, or it lacks none.
  std::optional<std::size_t> missing() const;
  /// The wait for the rest of a bucket.
  struct Hold {
    std::size_t lacks;      ///< requests
    Clock::time_point due;  ///< when it is given up
  };
  /// Nullopt as for missing(). `now` is called only while requests are held.
  std::optional<Hold> hold(Clock::time_point (*now)());
  /// Holds nothing back until the step is over: the held requests, to be announced by themselves.
  std::list<Request> release() { return held_.release(); }

  // The agreement of all ranks.

  /// The operations of a bucket. Lent until end_round(). Errors  Error(kProtocol) for a hash that no bucket has.
  const std::vector<Id>& ids(Bucket bucket) const { return plan_.buckets()[index_of(bucket)].ids; }
  /// All ranks have announced the bucket at once.
  void agreed_on_bucket(Bucket bucket) { plan_.agreed(index_of(bucket)); }
  /// All ranks have agreed on an operation. `begins`: see Request.
  void agreed(Id id, std::size_t bytes, bool begins);
  /// The last two steps were this operation alone: agreed() and end_round() then do nothing.
  bool is_only(Id id) const { return cycle_.is_only(id); }
  /// An operation without an id was agreed on: no step that came before counts.
  void interrupted();
  /// The cache has forgotten an operation.
  void forgotten(Id id);
  /// The plan ends with this round.
  void end_plan() { ends_ = true; }
  /// Ends the round. When the plan changes, returns the requests that were held; they and all others that are not
  /// announced yet are then to be given to hold() again. `is_busy`: this rank waits for an operation that it has
  /// announced.
  std::optional<std::list<Request>> end_round(bool is_busy, const StepPlan::HashOf& hash_of);

 private:
  std::size_t index_of(Bucket bucket) const;
  bool wants_new_plan(bool has_repeated);
  void follow(StepPlan plan, bool is_busy, std::list<Request>& released);

  const Settings settings_;
  RepeatingCycle cycle_;
  StepPlan plan_;
  HeldRequests held_;
  std::optional<RepeatingCycle::Event> ended_;  ///< the end of a cycle in this round
  bool ends_ = false;                           ///< the plan ends with this round
  int repeats_ = 0;                             ///< of the cycle, while there is no plan for it
  int enough_repeats_ = 1;                      ///< for a plan; more after a plan that the ranks have not followed
  std::size_t held_before_ = 0;                 ///< requests, when `due_` was set
  Clock::time_point due_;
};

}  // namespace runjob::runtime
