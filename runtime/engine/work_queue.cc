#include "runtime/engine/work_queue.hpp"

#include <algorithm>
#include <utility>

namespace runjob::runtime {

void WorkQueue::add(const std::string& name, const Signature& signature, bool begins) {
  if (window.is_used()) window.submitted(signature, Clock::now());
  requests_.push_back({name, signature, begins});
}

std::list<Request> WorkQueue::take_requests() {
  if (window.is_used()) window.clear();
  return std::exchange(requests_, {});
}

bool WorkQueue::is_awaited() const {
  return std::any_of(awaited.begin(), awaited.end(), [](const Completion* each) { return !each->done(); });
}

bool WorkQueue::awaits_bucket(bool is_stopping) const {
  return hold && requests_.size() < hold->lacks && !is_awaited() && !is_stopping;
}

bool WorkQueue::take_role(const PhaseRecord& phase) {
  if (role_ != DriverRole::kVacant || phase.is_ended()) return false;
  role_ = DriverRole::kDriving;
  return true;
}

}  // namespace runjob::runtime
