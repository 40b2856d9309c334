#pragma once

#include <algorithm>
#include <chrono>

namespace runjob {

/// The time limit of one wait for another process. Time in which this process stood still does not count: after Ctrl-Z
/// and fg, the other process has stood still as well, and may go on a little later than this one. A process has stood
/// still when it looks at the limit much later than it meant to.
///
/// Use      until the wait is over: is_over(), then a sleep until next_look() at most.
/// Threads  one at a time.
class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  /// The longest sleep between two looks.
  static constexpr std::chrono::milliseconds kSlice{500};
  /// The time between two looks of a process that has stood still. It is twice a slice, so that a process on a busy
  /// machine reaches its limits; and it is not longer than the shortest limit that a user can set.
  static constexpr std::chrono::milliseconds kStandstill{1000};

  /// The wait begins `now`.
  TimeLimit(Clock::duration limit, Clock::time_point now) : left_(limit), last_look_(now) {}

  /// True when this process has waited for the whole limit.
  bool is_over(Clock::time_point now) {
    const Clock::duration since = now - last_look_;
    if (since < kStandstill) left_ -= since;
    last_look_ = now;
    return left_ <= Clock::duration::zero();
  }

  /// The time at which is_over() must be called again.
  Clock::time_point next_look() const {
    const bool is_over = left_ <= Clock::duration::zero();
    return last_look_ + (is_over ? kSlice : std::min<Clock::duration>(kSlice, left_));
  }

 private:
  Clock::duration left_;
  Clock::time_point last_look_;
};

}  // namespace runjob
