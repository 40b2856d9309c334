#include "bindings/tensorflow/completion_thread.hpp"

#include <pthread.h>
#include <utility>

namespace runjob::tensorflow {

CompletionThread& CompletionThread::current() {
  static CompletionThread& thread = *new CompletionThread;
  return thread;
}

CompletionThread::CompletionThread() {
  std::thread thread([this] { run(); });
  ::pthread_setname_np(thread.native_handle(), "runjob-tf");
  thread.detach();
}

void CompletionThread::add(std::function<void()> end) {
  {
    const MutexLock lock(mutex_);
    ends_.push_back(std::move(end));
  }
  changed_.notify_one();
}

void CompletionThread::run() {
  for (;;) {
    std::function<void()> end;
    {
      const MutexLock lock(mutex_);
      while (ends_.empty()) changed_.wait(mutex_);
      end = std::move(ends_.front());
      ends_.pop_front();
    }
    end();
  }
}

}  // namespace runjob::tensorflow
