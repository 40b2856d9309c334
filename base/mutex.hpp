#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

/// std::mutex with the attributes that clang's -Wthread-safety checks; plain elsewhere.
/// Source: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#if defined(__clang__)
#define RUNJOB_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define RUNJOB_THREAD_ATTRIBUTE(x)
#endif
#define GUARDED_BY(mutex) RUNJOB_THREAD_ATTRIBUTE(guarded_by(mutex))
#define REQUIRES(mutex) RUNJOB_THREAD_ATTRIBUTE(requires_capability(mutex))

namespace runjob {

class RUNJOB_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() RUNJOB_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() RUNJOB_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  bool try_lock() RUNJOB_THREAD_ATTRIBUTE(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class ConditionVariable;
  std::mutex mutex_;
};

class RUNJOB_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) RUNJOB_THREAD_ATTRIBUTE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RUNJOB_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits on a Mutex that the caller holds: `condition.wait(mutex)` inside a MutexLock.
/// Not std::condition_variable_any, which notifies while it holds a mutex of its own: a waiter that runs at once has to
/// sleep again until that mutex is free.
class ConditionVariable {
 public:
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  template <class Clock, class Duration>
  std::cv_status wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& deadline) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_until(held, deadline);
    held.release();
    return status;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace runjob
