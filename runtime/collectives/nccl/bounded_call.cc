#include "runtime/collectives/nccl/bounded_call.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/mutex.hpp"

namespace runjob::runtime::nccl {
namespace {

struct State {
  Mutex mutex;
  ConditionVariable changed;
  bool is_done GUARDED_BY(mutex) = false;
};

using Clock = std::chrono::steady_clock;

/// The threads of this process that have not ended.
struct Running {
  Mutex mutex;
  ConditionVariable changed;
  int count GUARDED_BY(mutex) = 0;
  Clock::time_point last_begin GUARDED_BY(mutex);
  std::atomic<::pid_t> process{0};  ///< that has registered the exit handler

  static Running& get() {
    static auto* const made = new Running;  // never destroyed: threads may outlive static objects
    return *made;
  }
  void begin();
  void end();
  void wait_at_exit(int status);
};

/// exit() runs handlers in the reverse order of their registration. NCCL is open when the first call begins, so its
/// handlers come after this one.
void Running::begin() {
  const MutexLock lock(mutex);
  ++count;
  last_begin = Clock::now();
  if (process.exchange(::getpid()) != 0) return;
  const auto wait = [](int status, void* running) { static_cast<Running*>(running)->wait_at_exit(status); };
  ::on_exit(wait, this);
}

void Running::end() {
  const MutexLock lock(mutex);
  --count;
  changed.notify_all();
}

/// A child of fork() has none of the threads, and the mutex may be held there for ever.
void Running::wait_at_exit(int status) {
  if (::getpid() != process) return;
  {
    const MutexLock lock(mutex);
    while (count > 0 && Clock::now() < last_begin + kExitTime) changed.wait_until(mutex, last_begin + kExitTime);
    if (count == 0) return;
  }
  std::fputs("runjob: warning: a call of NCCL has not ended, so that this process ends without its exit handlers\n",
             stderr);
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace

bool run_bounded(const char* name, std::chrono::milliseconds most, std::function<void()> work,
                 const std::function<bool()>& is_given_up) {
  constexpr std::chrono::milliseconds kLook{10};
  const auto state = std::make_shared<State>();
  Running::get().begin();
  std::thread thread([state, name, work = std::move(work)] {
    ::pthread_setname_np(::pthread_self(), name);
    work();
    Running::get().end();
    const MutexLock lock(state->mutex);
    state->is_done = true;
    state->changed.notify_all();
  });
  const auto deadline = Clock::now() + most;
  bool is_done = false;
  while (!is_done && Clock::now() < deadline && !(is_given_up && is_given_up())) {
    const MutexLock lock(state->mutex);
    if (!state->is_done) state->changed.wait_until(state->mutex, std::min(deadline, Clock::now() + kLook));
    is_done = state->is_done;
  }
  if (is_done) {
    thread.join();
  } else {
    thread.detach();
  }
  return is_done;
}

}  // namespace runjob::runtime::nccl
