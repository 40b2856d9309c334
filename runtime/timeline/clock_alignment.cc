#include "runtime/timeline/clock_alignment.hpp"

#include <algorithm>

namespace runjob::runtime {

void ClockAlignment::add(std::int64_t asked, std::int64_t theirs, std::int64_t answered) {
  const std::int64_t way = answered - asked;
  samples_.push_back({way, theirs - asked - way / 2});
  if (samples_.size() > kRemembered) samples_.pop_front();
}

std::optional<std::int64_t> ClockAlignment::offset() const {
  const auto best = std::min_element(samples_.begin(), samples_.end(),
                                     [](const Sample& a, const Sample& b) { return a.way < b.way; });
  return best == samples_.end() ? std::nullopt : std::optional(best->offset);
}

}  // namespace runjob::runtime
