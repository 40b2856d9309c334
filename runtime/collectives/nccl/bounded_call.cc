#include "runtime/collectives/nccl/bounded_call.hpp"

#include <memory>
#include <pthread.h>
#include <thread>
#include <utility>

#include "base/mutex.hpp"

namespace runjob::runtime::nccl {
namespace {

struct State {
  Mutex mutex;
  ConditionVariable changed;
  bool is_done GUARDED_BY(mutex) = false;
};

}  // namespace

bool run_bounded(const char* name, std::chrono::milliseconds most, std::function<void()> work,
                 const std::function<bool()>& is_given_up) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{10};
  const auto state = std::make_shared<State>();
  std::thread thread([state, name, work = std::move(work)] {
    ::pthread_setname_np(::pthread_self(), name);
    work();
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
