#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/event_fd.hpp"
#include "base/unique_handle.hpp"

namespace runjob::runtime {

/// The thread "runjob-rounds". It receives the messages of other hosts while the driver does not receive them itself.
///
/// A driver that runs one operation after the other must not be disturbed: a thread that woke up for each message would
/// take the processor and the lock just when the driver needs both. So the thread does not watch the descriptor while
/// the driver uses it, and for a millisecond afterwards. The driver makes no system call for that. After a millisecond
/// without a use the thread watches again, and then sleeps until something comes.
///
/// Threads  enter(), leave() and expect_absence() are the driver's; the rest is any thread's.
class IdleReceiver {
 public:
  /// `descriptor` is readable when there is something to receive. `receive` runs on the thread.
  IdleReceiver(int descriptor, std::function<void()> receive);
  /// Waits until `receive` has ended.
  ~IdleReceiver();
  IdleReceiver(const IdleReceiver&) = delete;
  IdleReceiver& operator=(const IdleReceiver&) = delete;

  /// From now on the driver receives by itself.
  void enter() {
    is_absent_.store(false, std::memory_order_relaxed);
    uses_.fetch_add(1, std::memory_order_relaxed);
  }
  /// The driver receives no more. It is likely to do so again soon.
  void leave() { uses_.fetch_add(1, std::memory_order_relaxed); }
  /// The driver, which has left, will be away: the thread watches at once.
  void expect_absence();

  bool is_driver_inside() const { return (uses_.load() & 1) != 0; }

 private:
  void run();
  bool is_in_use();
  void watch(bool watches);

  const int descriptor_;
  const std::function<void()> receive_;
  std::atomic<std::uint64_t> uses_{0};  ///< odd while the driver is inside
  std::atomic<bool> is_absent_{false};
  std::atomic<bool> watches_{true};
  std::atomic<bool> stop_{false};
  std::uint64_t seen_uses_ = 0;  ///< the thread's
  EventFd wake_;
  UniqueFd poll_;  ///< an epoll of the descriptor and of wake_
  std::thread thread_;
};

}  // namespace runjob::runtime
