#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <vector>

#include "runtime/negotiation/control_message.hpp"
#include "runtime/negotiation/plans/step_plan.hpp"

namespace runjob::runtime {

/// The requests that one rank holds back until a bucket of the plan is complete, which is then announced with one hash.
/// Buckets are announced in the plan's order. A rank that departs from the plan holds nothing until the step is over.
/// Unnamed operations are announced in the order of their submission: a rank departs before one would be held that the
/// plan has before another held one.
/// Holding changes when an operation is announced, and never what the ranks agree on.
class HeldRequests {
 public:
  using Id = StepPlan::Id;

  /// Follows another plan, which is lent; nothing may be held. `is_within`: the rank has announced some of the current
  /// cycle already.
  void follow(const StepPlan& plan, bool is_within);

  /// Takes the first of `requests`. False when it is to be announced by itself.
  bool hold(Id id, std::list<Request>& requests);
  /// An operation was announced by itself.
  void announced_alone(Id id) { departed_ = departed_ || (plan_ != nullptr && plan_->bucket_of(id)); }
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  bool holds_unnamed() const { return unnamed_count_ != 0; }
  /// Requests that the next bucket lacks.
  std::size_t missing() const { return plan_->buckets()[next_].ids.size() - held_[next_].size(); }

  bool has_full() const { return count_ != 0 && missing() == 0; }
  /// Returns the index of the bucket that is to be announced now, which is not held any more.
  std::size_t take_full();
  /// This rank departs from the plan: returns the held requests, to be announced by themselves.
  std::list<Request> release();
  /// A cycle is over. `is_silent`: this rank waits for no operation that it has announced.
  void end_cycle(bool is_silent);

 private:
  bool keeps_order(Id id, std::size_t bucket);

  const StepPlan* plan_ = nullptr;
  std::vector<std::list<Request>> held_;  ///< by bucket
  std::size_t count_ = 0;
  std::size_t unnamed_count_ = 0;                 ///< of `count_`
  std::size_t last_bucket_ = 0, last_index_ = 0;  ///< the place in the plan of the unnamed operation held last
  std::size_t next_ = 0;                          ///< index of the bucket that is announced next
  bool departed_ = false;                         ///< the rank has departed from the plan in this cycle
};

}  // namespace runjob::runtime
