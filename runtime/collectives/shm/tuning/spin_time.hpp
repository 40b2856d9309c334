#pragma once

#include <algorithm>
#include <chrono>

namespace runjob::runtime {

/// How long a wait spins before it sleeps, learned from the waits before it.
///
/// To sleep and to be woken takes longer than many a message. Two ranks that each sleep until the other one has woken
/// may go on like that forever. So a short sleep asks for longer spins, as a successful spin does. A spin in vain asks
/// for shorter ones: another thread of this rank, which computes the data that the others wait for, may need the
/// processor.
///
/// Threads  one at a time. It reads no clock: the caller passes times.
class SpinTime {
 public:
  using Duration = std::chrono::steady_clock::duration;

  static constexpr Duration kLeast = std::chrono::microseconds(1);
  /// A wait that took less, with its sleep, was one for an event that was about to happen.
  static constexpr Duration kShortWait = std::chrono::microseconds(400);

  /// `most`: the longest time, with which it begins. Zero: never spin.
  explicit SpinTime(Duration most) : most_(most), time_(most) {}

  Duration time() const { return time_; }
  bool is_allowed() const { return most_ != Duration::zero(); }

  /// A wait ended while the rank spun.
  void reached_while_spinning() { time_ = std::min(most_, 2 * time_); }
  /// A wait ended as soon as the rank had given its processor away: the spin had kept the other thread from running.
  void reached_after_yield() { time_ = shorter(); }
  /// A wait ended while the rank slept, `waited` after its beginning.
  void reached_after_sleep(Duration waited) { time_ = waited < kShortWait ? std::min(most_, 2 * time_) : shorter(); }

 private:
  Duration shorter() const { return std::max(std::min(most_, kLeast), time_ / 2); }

  Duration most_, time_;
};

}  // namespace runjob::runtime
