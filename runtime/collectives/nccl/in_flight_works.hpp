#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/cuda/work.hpp"

namespace runjob::runtime::nccl {

/// The works of a backend that are launched and not done, and the thread "runjob-gpu", which looks at them: it calls
/// the callbacks of those that are done, and asks for the device's health while there are any. It sleeps without a
/// wake-up when there has been nothing to look at for a second.
/// Threads  any.
class InFlightWorks {
 public:
  /// Called on the thread while works are in flight; throws what has failed. Must not block.
  using CheckHealth = std::function<void()>;
  /// Called on the thread with that failure, or that of a work, once.
  using OnFailure = std::function<void(const Status&)>;

  InFlightWorks(CheckHealth check_health, OnFailure on_failure);
  ~InFlightWorks();  ///< ends the thread; works that are left are forgotten
  InFlightWorks(const InFlightWorks&) = delete;
  InFlightWorks& operator=(const InFlightWorks&) = delete;

  void add(std::shared_ptr<cuda::Work> work);
  /// Notes the failure of a work that could not be launched.
  void note_failure(const Status& why);
  /// Ends all works with `why`, and all that are added later.
  void fail(const Status& why);
  /// Ends the thread, and then the works that are left, with `why` and their callbacks. It is no failure of the device.
  /// Nothing is added later.
  void end(const Status& why);
  /// Waits until no work is in flight; false when there are some after `most`.
  bool drain(std::chrono::milliseconds most);
  /// nullopt while a work is not done; then the first failure of one that there has ever been, or OK.
  std::optional<Status> outcome() const;

 private:
  void stop();
  void run();
  void look();
  std::vector<std::shared_ptr<cuda::Work>> works() const;
  void report(const Status& why);

  const CheckHealth check_health_;
  const OnFailure on_failure_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::vector<std::shared_ptr<cuda::Work>> works_ GUARDED_BY(mutex_);
  std::optional<Status> failure_ GUARDED_BY(mutex_);
  Status first_failed_ GUARDED_BY(mutex_);  ///< of the works
  bool is_asleep_ GUARDED_BY(mutex_) = false, is_ended_ GUARDED_BY(mutex_) = false;
  bool has_failed_ = false;  ///< the thread's
  std::thread thread_;       ///< from the first work on
};

}  // namespace runjob::runtime::nccl
