#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/engine/control_message.hpp"
#include "runtime/engine/step_plan.hpp"

namespace runjob::runtime {

/// What one rank has submitted, but holds back until a bucket of the plan is complete, which is then said with one number. Buckets
/// are said in the plan's order. A rank that departs from the plan holds nothing until the step is over.
/// Only when something is said depends on it, never what the ranks agree on.
class HeldRequests {
 public:
  using Id = StepPlan::Id;

  /// From now on it is this plan, lent; nothing may be held. `is_within`: something of the current cycle was said already.
  void follow(const StepPlan& plan, bool is_within);

  /// False: it is to be said by itself.
  bool hold(Id id, Request& request);
  /// An operation was said by itself.
  void said_alone(Id id) { departed_ = departed_ || (plan_ != nullptr && plan_->bucket_of(id)); }
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  /// Requests that the next bucket lacks.
  std::size_t missing() const { return plan_->buckets()[next_].ids.size() - held_[next_].size(); }

  bool has_full() const { return count_ != 0 && missing() == 0; }
  /// The bucket that is to be said now, which is not held any more.
  std::size_t take_full();
  /// This rank departs from the plan: all that is held, to be said by itself.
  std::vector<Request> release();
  /// A cycle is over. `is_silent`: this rank waits for nothing that it has said.
  void end_cycle(bool is_silent);

 private:
  const StepPlan* plan_ = nullptr;
  std::vector<std::vector<Request>> held_;  ///< by bucket
  std::size_t count_ = 0;
  std::size_t next_ = 0;   ///< bucket
  bool departed_ = false;  ///< from the plan, in this cycle
};

}  // namespace runjob::runtime
