#include "launcher/srun_task/step_liveness.hpp"

namespace runjob {

StepLiveness::StepLiveness(int size, TimePoint now)
    : tasks_(static_cast<std::size_t>(size), Task{now}), running_(size), last_check_(now) {}

void StepLiveness::seen(int rank, TimePoint now) {
  if (rank >= 0 && static_cast<std::size_t>(rank) < tasks_.size()) tasks_[static_cast<std::size_t>(rank)].seen = now;
}

void StepLiveness::ended(int rank) {
  Task& task = tasks_.at(static_cast<std::size_t>(rank));
  if (task.ended) return;
  task.ended = true;
  --running_;
}

std::vector<int> StepLiveness::lost(TimePoint now) {
  const bool was_suspended = now - last_check_ > 2 * kStepPoll;
  last_check_ = now;
  std::vector<int> ranks;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (was_suspended) tasks_[i].seen = now;
    if (!tasks_[i].ended && now - tasks_[i].seen >= kLostAfter) ranks.push_back(static_cast<int>(i));
  }
  return ranks;
}

}  // namespace runjob
