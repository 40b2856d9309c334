#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/cuda/work.hpp"

namespace runjob::runtime::nccl {

/// The works of a backend that are launched and not done, and the thread "runjob-gpu", which looks at them once a
/// millisecond. It calls the callbacks of those that are done, and checks the device's health while there are any. It
/// sleeps without a wake-up when there has been nothing to look at for a second.
/// Owner    a work is shared with the completion of its operation.
/// Threads  any. Callbacks run on "runjob-gpu", with no lock held.
class InFlightWorks {
 public:
  /// Called on the thread while works are in flight. Throws an Error when the device has failed. Must not block.
  using CheckHealth = std::function<void()>;
  /// Called on the thread once, with the first failure of the health or of a work.
  using OnFailure = std::function<void(const Status&)>;

  InFlightWorks(CheckHealth check_health, OnFailure on_failure);
  ~InFlightWorks();  ///< ends the thread; no callback is called any more for works that are left
  InFlightWorks(const InFlightWorks&) = delete;
  InFlightWorks& operator=(const InFlightWorks&) = delete;

  void add(std::shared_ptr<cuda::Work> work);
  /// Notes the failure of a work that could not be launched.
  void note_failure(const Status& why);
  /// Ends all works that are not done with `why`, and all that are added later. Their callbacks follow on the thread.
  void fail(const Status& why);
  /// Ends the thread, and then the works that are left, with `why` and their callbacks. It is no failure of the device.
  /// Nothing is added later.
  void end(const Status& why);
  /// Waits until no work is in flight; false when there are some after `most`.
  bool drain(std::chrono::milliseconds most);
  /// nullopt while a work is not done; then the first failure among all works that there have been, or OK.
  std::optional<Status> outcome() const;

 private:
  void stop();
  void run();
  void look();
  void look_at(std::span<const std::shared_ptr<cuda::Work>> works);
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
  // The thread's. The lists are kept for their memory.
  bool has_failed_ = false;
  std::vector<std::shared_ptr<cuda::Work>> looked_at_;
  std::vector<const cuda::Work*> done_;
  std::thread thread_;  ///< from the first work on
};

}  // namespace runjob::runtime::nccl
