#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.hpp"

namespace runjob::tensorflow {

/// "runjob-tf": ends operations of which the runtime says that they are done, since the runtime's own threads must not run what
/// TensorFlow does then. One per process, from the first operation on, for ever: TensorFlow's threads run while the process exits.
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
