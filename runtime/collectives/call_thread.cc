#include "runtime/collectives/call_thread.hpp"

#include <pthread.h>
#include <utility>

namespace runjob::runtime {

CallThread::CallThread(const char* name, std::function<Status(const Call&)> run) : run_(std::move(run)) {
  thread_ = std::thread([this] { work(); });
  ::pthread_setname_np(thread_.native_handle(), name);
}

CallThread::~CallThread() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void CallThread::start(Call call, Done done) {
  const MutexLock lock(mutex_);
  entries_.push_back({std::move(call), std::move(done)});
  changed_.notify_one();
}

void CallThread::work() {
  for (;;) {
    Entry entry;
    {
      const MutexLock lock(mutex_);
      while (entries_.empty() && !stop_) changed_.wait(mutex_);
      if (entries_.empty()) return;
      entry = std::move(entries_.front());
      entries_.pop_front();
    }
    entry.done(run_(entry.call));
  }
}

}  // namespace runjob::runtime
