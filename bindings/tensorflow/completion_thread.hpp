#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.hpp"

namespace runjob::tensorflow {

/// The thread "runjob-tf". It ends operations that the runtime reports as done, because TensorFlow's completion must
/// not run on the runtime's own threads.
/// Life     one per process, from the first operation on, for ever: TensorFlow's threads run while the process exits.
class CompletionThread {
 public:
  /// The process's own.
  static CompletionThread& current();

  /// Has `end` called. Any thread; returns at once.
  void add(std::function<void()> end);

 private:
  CompletionThread();
  [[noreturn]] void run();

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> ends_ GUARDED_BY(mutex_);
};

}  // namespace runjob::tensorflow
