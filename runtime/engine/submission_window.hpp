#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// Decides how long requests that were submitted on a rank wait for more that can be fused with them: at most the cycle
/// time from the first one on. They wait no longer once they fill a buffer, once one of them is urgent (a barrier, a
/// join), or while a thread waits for an operation.
/// Threads  one at a time.
class SubmissionWindow {
 public:
  using Clock = std::chrono::steady_clock;

  /// `enough_bytes`: the bytes that fill a buffer.
  SubmissionWindow(std::chrono::microseconds cycle_time, std::size_t enough_bytes)
      : cycle_time_(cycle_time), enough_bytes_(enough_bytes) {}

  /// True when requests may wait at all.
  bool is_used() const { return cycle_time_.count() != 0; }

  void submitted(const Signature& signature, Clock::time_point now);
  /// The requests have been announced.
  void clear();
  void begin_waiting() { ++waiters_; }
  void end_waiting() { --waiters_; }

  /// The time at which the requests are to be announced; nullopt when that is now, or there are none.
  std::optional<Clock::time_point> closes(Clock::time_point now) const;

 private:
  std::chrono::microseconds cycle_time_;
  std::size_t enough_bytes_;
  std::optional<Clock::time_point> end_;  ///< of the window, while there are requests in it
  std::size_t bytes_ = 0;
  bool is_urgent_ = false;
  int waiters_ = 0;
};

}  // namespace runjob::runtime
