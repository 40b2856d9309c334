#include "runtime/negotiation/plans/repeating_cycle.hpp"

#include <utility>

namespace runjob::runtime {

RepeatingCycle::Event RepeatingCycle::agreed(const Step& step) {
  if (is_only(step.id)) return Event::kNone;
  only_.reset();
  if (step.id >= seen_.size()) seen_.resize(step.id + 1);
  Seen& seen = seen_[step.id];
  const bool comes_again = seen.cycle == cycle_;
  if (comes_again) end();
  const bool was_in_last = seen.cycle + 1 == cycle_;
  current_.push_back({step.id, step.bytes, step.begins || (was_in_last && seen.begins)});
  seen = {cycle_, step.begins};
  common_ += was_in_last ? 1 : 0;
  if (common_ != current_.size() || common_ != ended_.size()) return comes_again ? Event::kEnded : Event::kNone;
  if (common_ == 1) only_ = step.id;
  end();
  return Event::kRepeated;
}

void RepeatingCycle::end() {
  ended_.swap(current_);
  current_.clear();
  ++cycle_;
  common_ = 0;
}

void RepeatingCycle::interrupted() {
  only_.reset();
  current_.clear();
  ended_.clear();
  cycle_ += 2;
  common_ = 0;
}

}  // namespace runjob::runtime
