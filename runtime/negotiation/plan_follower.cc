#include "runtime/negotiation/plan_follower.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace runjob::runtime {

std::optional<std::size_t> PlanFollower::missing() const {
  if (held_.empty() || held_.has_full()) return std::nullopt;
  return held_.missing();
}

std::optional<PlanFollower::Hold> PlanFollower::hold(Clock::time_point (*now)()) {
  const std::optional<std::size_t> lacks = missing();
  if (!lacks) {
    held_before_ = 0;
    return std::nullopt;
  }
  if (held_.size() != std::exchange(held_before_, held_.size())) due_ = now() + settings_.patience;
  return Hold{*lacks, due_};
}

std::size_t PlanFollower::index_of(Bucket bucket) const {
  const auto index = plan_.find(bucket);
  if (!index) throw Error(Errc::kProtocol, "a rank follows a plan that is not this one's");
  return *index;
}

void PlanFollower::agreed(Id id, std::size_t bytes, bool begins) {
  if (settings_.bucket_bytes == 0) return;
  const RepeatingCycle::Event event = cycle_.agreed({id, bytes, begins});
  if (event != RepeatingCycle::Event::kNone) ended_ = event;
}

void PlanFollower::interrupted() {
  cycle_.interrupted();
  ended_.reset();
  repeats_ = 0;
}

void PlanFollower::forgotten(Id id) {
  ends_ = ends_ || plan_.contains(id);
  interrupted();
}

/// The plan changes only here: within a round, all ranks mean the buckets of the one before.
std::optional<std::list<Request>> PlanFollower::end_round(bool is_busy, const StepPlan::HashOf& hash_of) {
  std::list<Request> released;
  if (std::exchange(ends_, false)) {
    interrupted();
    follow({}, is_busy, released);
    return released;
  }
  if (!ended_) return std::nullopt;
  const bool has_repeated = std::exchange(ended_, {}) == RepeatingCycle::Event::kRepeated;
  const bool has_fewer_buckets = plan_.end_cycle();
  if (has_fewer_buckets) follow(std::move(plan_), is_busy, released);
  held_.end_cycle(/*is_silent=*/!is_busy);
  const bool has_new_plan = wants_new_plan(has_repeated);
  if (has_new_plan) follow(StepPlan(cycle_.steps(), settings_.bucket_bytes, hash_of), is_busy, released);
  if (!has_fewer_buckets && !has_new_plan) return std::nullopt;
  return released;
}

/// A plan that was hardly ever followed is made again only when the cycle has repeated twice as often as before.
bool PlanFollower::wants_new_plan(bool has_repeated) {
  constexpr int kMost = 256;
  const bool may_improve = has_repeated && (plan_.has_given_up() || !plan_.is_of(cycle_.steps()));
  repeats_ = may_improve ? repeats_ + 1 : 0;
  if (!may_improve || repeats_ < enough_repeats_) return false;
  enough_repeats_ = plan_.has_paid() ? 1 : std::min(2 * enough_repeats_, kMost);
  return true;
}

void PlanFollower::follow(StepPlan plan, bool is_busy, std::list<Request>& released) {
  released.splice(released.end(), held_.release());
  plan_ = std::move(plan);
  log::debug("a step repeats; its plan has {} buckets of several operations", plan_.buckets().size());
  held_.follow(plan_, /*is_within=*/is_busy);
}

}  // namespace runjob::runtime
