#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>

namespace stand_in {

/// The order in which the kernels of a process begin, whatever their streams: that of their launches, as NCCL keeps it
/// with NCCL_LAUNCH_ORDER_IMPLICIT=1.
class LaunchTurns {
 public:
  std::uint64_t take() {
    const std::lock_guard lock(mutex_);
    return taken_++;
  }
  /// Waits until all kernels with an earlier turn have begun. Comes back early when `is_given_up` returns true.
  void wait(std::uint64_t turn, const std::function<bool()>& is_given_up) {
    constexpr std::chrono::milliseconds kLook{1};
    std::unique_lock lock(mutex_);
    while (next_ != turn && !is_given_up()) changed_.wait_for(lock, kLook);
  }
  /// The kernel with this turn has begun, or never will.
  void end(std::uint64_t turn) {
    const std::lock_guard lock(mutex_);
    ended_.insert(turn);
    while (ended_.erase(next_) != 0) ++next_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t taken_ = 0, next_ = 0;
  std::set<std::uint64_t> ended_;  ///< from `next_` on
};

}  // namespace stand_in
