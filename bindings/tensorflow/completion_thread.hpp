#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.hpp"

namespace runjob::tensorflow {

/// The thread "runjob-tf". It ends operations that the runtime reports as done, because TensorFlow's completion must
/// not run on the runtime's own threads.
/// Life     one per process, from the first operation on. It never ends, because threads of TensorFlow still run while
///          the process exits.
/// Threads  any.
class CompletionThread {
 public:
  /// The thread of this process; the first call starts it.
  static CompletionThread& current();

  /// Queues `end`, which the thread calls after those that were queued before, and then destroys. Returns at once.
  /// `end` must not throw.
  void add(std::function<void()> end);

 private:
  CompletionThread();
  [[noreturn]] void run();

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> ends_ GUARDED_BY(mutex_);
};

}  // namespace runjob::tensorflow
