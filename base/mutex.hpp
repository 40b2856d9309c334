#pragma once

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
using ConditionVariable = std::condition_variable_any;

}  // namespace runjob
