#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"

namespace runjob::runtime {

/// Runs calls one after the other, in their order, on a thread of its own: for backends whose collectives block.
/// Threads  start() from any.
class CallThread {
 public:
  using Done = std::function<void(Status)>;

  /// `name`: the thread's, at most 15 characters. `run`: what to do with each call; it throws nothing.
  CallThread(const char* name, std::function<Status(const Call&)> run);
  /// Ends when everything that was started is done.
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  /// Returns at once; `done` is called on the thread.
  void start(Call call, Done done);

 private:
  struct Entry {
    Call call;
    Done done;
  };

  void work();

  const std::function<Status(const Call&)> run_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace runjob::runtime
