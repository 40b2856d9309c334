#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// Whether what was submitted on a rank is said to the others at once, or waits for more that can be fused with it: at most the
/// cycle time from the first one on, and no longer once there is enough to fill a buffer, something that nobody should wait for
/// (a barrier, a join), or somebody who waits.
/// Threads  one at a time.
class SubmissionWindow {
 public:
  using Clock = std::chrono::steady_clock;

  /// `enough_bytes`: what fills a buffer.
  SubmissionWindow(std::chrono::microseconds cycle_time, std::size_t enough_bytes)
      : cycle_time_(cycle_time), enough_bytes_(enough_bytes) {}

  /// Whether anything ever waits.
  bool is_used() const { return cycle_time_.count() != 0; }

  void submitted(const Signature& signature, Clock::time_point now);
  /// What was submitted has been said.
  void clear();
  void begin_waiting() { ++waiters_; }
  void end_waiting() { --waiters_; }

  /// When what was submitted is to be said; nullopt: now, or there is nothing.
  std::optional<Clock::time_point> closes(Clock::time_point now) const;

 private:
  std::chrono::microseconds cycle_time_;
  std::size_t enough_bytes_;
  std::optional<Clock::time_point> end_;  ///< of the window, while there is something in it
  std::size_t bytes_ = 0;
  bool is_urgent_ = false;
  int waiters_ = 0;
};

}  // namespace runjob::runtime
