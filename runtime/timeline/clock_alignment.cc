#include "runtime/timeline/clock_alignment.hpp"

#include <algorithm>

namespace runjob::runtime {

void ClockAlignment::add(std::int64_t asked, std::int64_t theirs, std::int64_t answered) {
  const std::int64_t round_trip = answered - asked;
  samples_.push_back({round_trip, theirs - asked - round_trip / 2});
  if (samples_.size() > kRemembered) samples_.pop_front();
}

std::optional<std::int64_t> ClockAlignment::offset() const {
  const auto best = std::min_element(samples_.begin(), samples_.end(),
                                     [](const Sample& a, const Sample& b) { return a.round_trip < b.round_trip; });
  return best == samples_.end() ? std::nullopt : std::optional(best->offset);
}

}  // namespace runjob::runtime
