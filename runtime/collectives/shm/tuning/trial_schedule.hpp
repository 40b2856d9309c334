#pragma once

#include <algorithm>
#include <cstdint>

namespace runjob::runtime {

/// When the candidates of a choice are tried, with how many messages each, and when again. A series of trials gives
/// some messages to each candidate. Then the choice holds for a stretch of messages, and the next series follows.
/// Stretches grow, because the first messages of a job are slower than the rest and may mislead; they stay finite,
/// because the fastest candidate depends on the cores that the ranks run on, which the system may change at any time.
///
/// Two policies use it. In AlgorithmTuner rank 0 measures and announces the choice. In StoresTuner each rank measures
/// and chooses for itself.
///
/// Threads  one at a time.
/// Cost     a few instructions a message; no clock, no allocation.
class TrialSchedule {
 public:
  struct Lengths {
    std::uint64_t messages = 0;  ///< of each candidate in a series
    /// How many of these are timed: the last ones. Those before write all of the shared memory once; only then has the
    /// candidate its lasting speed.
    std::uint64_t timed = 0;
    std::uint64_t first_period = 0, last_period = 0;  ///< each period is four times as long as the one before
    /// Messages of a series that are a part of its period. The rest of the period is the stretch.
    std::uint64_t trials_in_period = 0;
  };

  /// `first_stretch`: how many messages the choice that the owner begins with holds, before the first series.
  explicit TrialSchedule(const Lengths& lengths, std::uint64_t first_stretch = 0)
      : lengths_(lengths), period_(lengths.first_period), left_(first_stretch) {}

  /// True during a series, false while the choice holds.
  bool is_trying() const { return left_ == 0; }
  /// True if a candidate has had all of its messages of a series when it has had `count`.
  bool is_enough(std::uint64_t count) const { return count >= lengths_.messages; }
  /// True if the message of a candidate that comes after `count` others of the series is timed.
  bool is_timed(std::uint64_t count) const { return count + lengths_.timed >= lengths_.messages; }

  /// Ends a series: the choice holds for the next stretch.
  void settle() {
    const std::uint64_t period = std::min(period_, lengths_.last_period);
    left_ = period - std::min(period, lengths_.trials_in_period);
    period_ = 4 * period;
  }
  /// Counts a message of the stretch. Requires that the choice holds.
  void count() { --left_; }

 private:
  Lengths lengths_;
  std::uint64_t period_;
  std::uint64_t left_;  ///< messages of the stretch that are still to come
};

}  // namespace runjob::runtime
