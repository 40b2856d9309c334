#pragma once

#include <algorithm>
#include <chrono>

namespace runjob::runtime {

/// How long a wait looks again and again before it sleeps, learned from the waits before it.
///
/// To sleep and to be woken takes longer than many a message: two ranks that each sleep until the other one has woken may go on
/// so for ever. A sleep that turned out short therefore asks for longer looks, as a look that was rewarded does. Looking in vain asks for
/// shorter ones: the processor may be wanted by another thread of this rank, which computes what the others wait for.
class SpinTime {
 public:
  using Duration = std::chrono::steady_clock::duration;

  static constexpr Duration kLeast = std::chrono::microseconds(1);
  /// A wait that took less, sleep and all, was one for something that was about to come.
  static constexpr Duration kShortWait = std::chrono::microseconds(400);

  /// `most`: never longer; it begins with this. Zero: never at all.
  explicit SpinTime(Duration most) : most_(most), time_(most) {}

  Duration time() const { return time_; }
  bool is_allowed() const { return most_ != Duration::zero(); }

  /// What was waited for came while this rank looked.
  void came_in_time() { time_ = std::min(most_, 2 * time_); }
  /// It came as soon as this rank gave the processor away: looking had kept whoever brings it from running.
  void gave_way() { time_ = shorter(); }
  /// It came when this rank slept, so long after the wait began.
  void came_later(Duration waited) { time_ = waited < kShortWait ? std::min(most_, 2 * time_) : shorter(); }

 private:
  Duration shorter() const { return std::max(std::min(most_, kLeast), time_ / 2); }

  Duration most_, time_;
};

}  // namespace runjob::runtime
