#include "runtime/negotiation/held_requests.hpp"

#include <utility>

namespace runjob::runtime {

void HeldRequests::follow(const StepPlan& plan, bool is_within) {
  plan_ = plan.buckets().empty() ? nullptr : &plan;
  held_.assign(plan.buckets().size(), {});
  count_ = next_ = 0;
  departed_ = is_within;
}

bool HeldRequests::hold(Id id, std::list<Request>& requests) {
  if (plan_ == nullptr || departed_) return false;
  const std::optional<std::size_t> bucket = plan_->bucket_of(id);
  if (!bucket) return false;
  held_[*bucket].splice(held_[*bucket].end(), requests, requests.begin());
  ++count_;
  return true;
}

std::size_t HeldRequests::take_full() {
  const std::size_t bucket = std::exchange(next_, (next_ + 1) % held_.size());
  count_ -= held_[bucket].size();
  held_[bucket].clear();
  return bucket;
}

std::list<Request> HeldRequests::release() {
  std::list<Request> all;
  for (std::size_t i = 0; i < held_.size(); ++i)  // in the order in which they would have been announced
    all.splice(all.end(), held_[(next_ + i) % held_.size()]);
  count_ = 0;
  departed_ = true;
  return all;
}

void HeldRequests::end_cycle(bool is_silent) {
  if (!departed_ || !is_silent) return;
  departed_ = false;
  next_ = 0;
}

}  // namespace runjob::runtime
