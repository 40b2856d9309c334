#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <numeric>

namespace runjob::runtime {

/// The times of the trials of one candidate. Threads  one at a time.
class TrialTimes {
 public:
  static constexpr std::size_t kMost = 16;  ///< further times are ignored

  void add(std::chrono::nanoseconds time) {
    if (count_ < kMost) values_[count_++] = time;
  }
  std::size_t count() const { return count_; }
  /// The mean without the slowest quarter (of two: without the slower one), which other work has delayed. Requires a
  /// time.
  std::chrono::nanoseconds typical() const {
    auto sorted = values_;
    const auto begin = sorted.begin(), end = begin + static_cast<std::ptrdiff_t>(count_);
    std::sort(begin, end);
    const std::size_t counted = std::max<std::size_t>(count_ - std::max<std::size_t>(count_ / 4, 1), 1);
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(counted), std::chrono::nanoseconds(0)) /
           static_cast<std::int64_t>(counted);
  }

 private:
  std::array<std::chrono::nanoseconds, kMost> values_{};
  std::size_t count_ = 0;
};

}  // namespace runjob::runtime
