#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <poll.h>
#include <vector>

#include "base/event_fd.hpp"

namespace runjob::runtime {

/// poll() that other threads can end.
/// Threads  wait() one at a time, wake() from any.
class WakeablePoll {
 public:
  using Clock = std::chrono::steady_clock;

  /// Errors  Error(kSystem).
  using Deadlines = std::initializer_list<std::optional<Clock::time_point>>;

  /// Waits for an event on `descriptors`, whose `revents` are set, for a wake() now or since the last wait(), or until
  /// the earliest of the deadlines.
  void wait(std::vector<pollfd>& descriptors, Deadlines deadlines);
  void wake();

 private:
  EventFd wake_;
};

}  // namespace runjob::runtime
