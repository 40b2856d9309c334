#include "runtime/negotiation/held_requests.hpp"

#include <utility>

namespace runjob::runtime {

void HeldRequests::follow(const StepPlan& plan, bool is_within) {
  plan_ = plan.buckets().empty() ? nullptr : &plan;
  held_.assign(plan.buckets().size(), {});
  count_ = unnamed_count_ = next_ = 0;
  departed_ = is_within;
}

bool HeldRequests::hold(Id id, std::list<Request>& requests) {
  if (plan_ == nullptr || departed_) return false;
  const std::optional<std::size_t> bucket = plan_->bucket_of(id);
  if (!bucket) return false;
  if (is_unnamed(requests.front().name)) {
    if (!keeps_order(id, *bucket)) return false;
    ++unnamed_count_;
  }
  held_[*bucket].splice(held_[*bucket].end(), requests, requests.begin());
  ++count_;
  return true;
}

/// True when the plan announces an unnamed operation after those that are held; then it is the last one of them.
bool HeldRequests::keeps_order(Id id, std::size_t bucket) {
  const auto turn = [&](std::size_t of) { return (of + held_.size() - next_) % held_.size(); };
  std::size_t index = 0;
  if (unnamed_count_ != 0) {
    if (turn(bucket) < turn(last_bucket_)) return false;
    if (bucket == last_bucket_) index = last_index_ + 1;
  }
  const std::vector<Id>& ids = plan_->buckets()[bucket].ids;
  while (index < ids.size() && ids[index] != id) ++index;
  if (index == ids.size()) return false;
  last_bucket_ = bucket;
  last_index_ = index;
  return true;
}

std::size_t HeldRequests::take_full() {
  const std::size_t bucket = std::exchange(next_, (next_ + 1) % held_.size());
  count_ -= held_[bucket].size();
  for (const Request& request : held_[bucket]) unnamed_count_ -= is_unnamed(request.name) ? 1 : 0;
  held_[bucket].clear();
  return bucket;
}

std::list<Request> HeldRequests::release() {
  std::list<Request> all;
  for (std::size_t i = 0; i < held_.size(); ++i)  // in the order in which they would have been announced
    all.splice(all.end(), held_[(next_ + i) % held_.size()]);
  count_ = unnamed_count_ = 0;
  departed_ = true;
  return all;
}

void HeldRequests::end_cycle(bool is_silent) {
  if (!departed_ || !is_silent) return;
  departed_ = false;
  next_ = 0;
}

}  // namespace runjob::runtime
