#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "base/pmix/pmix_abi.hpp"

namespace runjob {

/// The arguments of a request to libpmix, which may read them until it answers.
struct PmixRequest {
  pmix::Proc process{};
  std::string key;
  pmix::Info info{};
};

/// The answer that libpmix gives on its own thread, perhaps after this process has stopped waiting for it.
/// Owner    the copies, which share one answer, and libpmix by context(). The last one of them frees the request.
/// Threads  wait() and finish() any, the rest one at a time.
template <class Answer>
class PmixPromise {
 public:
  /// The arguments. They must be set before the request is made.
  PmixRequest& request() { return state_->request; }

  /// A share for libpmix, as the context of its callback. It must be passed to finish() exactly once. When libpmix
  /// refuses the request and therefore makes no callback, the caller passes it there itself.
  void* context() const { return new std::shared_ptr<State>(state_); }
  /// Gives the answer to the threads that wait for it, and releases the share.
  static void finish(void* context, Answer answer) {
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(context));
    const MutexLock lock((*state)->mutex);
    (*state)->answer = std::move(answer);
    (*state)->done.notify_all();
  }

  /// Waits for the answer; nullopt when the deadline has passed. May be called again.
  std::optional<Answer> wait(std::chrono::steady_clock::time_point deadline) const {
    const MutexLock lock(state_->mutex);
    while (!state_->answer && state_->done.wait_until(state_->mutex, deadline) == std::cv_status::no_timeout) {
    }
    return state_->answer;
  }

 private:
  struct State {
    PmixRequest request;
    Mutex mutex;
    ConditionVariable done;
    std::optional<Answer> answer GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();  // owners: the thread that waits, and libpmix
};

}  // namespace runjob
