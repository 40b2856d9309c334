#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/status.hpp"
#include "runtime/collectives/device/device_work.hpp"
#include "runtime/collectives/memory.hpp"
#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// The outcome of one operation, once the operation has ended. An operation on a device has ended for the engine when
/// it is launched there; work() is the rest of it.
/// Owner    shared: the caller's handle and the engine that will finish it; either may go first.
/// Threads  any.
class Completion {
 public:
  /// The result of an operation that has no buffer of the caller's for it.
  struct Result {
    Shape shape;                       ///< empty for no result
    const void* data = nullptr;        ///< dense: in `bytes`, or in the caller's room
    Buffer bytes;                      ///< empty when the caller had room
    Shape received_splits;             ///< alltoall: rows from each rank
    std::vector<Result> tensors = {};  ///< the results of a group
    /// Where a message came from.
    struct Source {
      int rank = -1;  ///< in the process set
      std::int64_t bytes = 0;
    };
    std::optional<Source> source = {};  ///< of a receive
  };

  /// To be called once. The caller keeps a share of this object until it returns: a waiter may release its own at once.
  void finish(Status status) { finish(std::move(status), {}); }
  void finish(Status status, Result result, std::shared_ptr<DeviceWork> work = {});

  bool done() const { return done_.load(std::memory_order_acquire); }
  /// The outcome; nullopt when it is not there after `timeout`. Without a timeout, waits for ever.
  std::optional<Status> wait(std::optional<std::chrono::duration<double>> timeout) const;

  /// The device's part of an operation that is done; null for none.
  const std::shared_ptr<DeviceWork>& work() const { return work_; }
  /// True once the operation is done and the device has nothing left to do for it.
  bool has_ended() const { return done() && (!work_ || work_->outcome()); }
  /// wait(), and waits on the host for the device too. nullopt when either is not there at the deadline.
  std::optional<Status> wait_for_end(DeviceWork::Deadline deadline) const;

  /// Sets a callback for the end of the operation, on the device too. It is called once, by the thread that finishes
  /// the operation, with no lock held; by this one when that has happened.
  /// Errors  Error(kInvalidArgument) for a second one.
  void on_finish(std::function<void()> notify);

  /// The result of a finished operation; lent as long as this object lives.
  const Result& result() const;

 private:
  void pass_on(std::function<void()> notify);

  mutable Mutex mutex_;
  mutable ConditionVariable finished_;
  std::function<void()> notify_ GUARDED_BY(mutex_);
  std::atomic<bool> done_{false};  ///< set under the mutex
  // Written before `done_`, and never again.
  Status status_;
  Result result_;
  std::shared_ptr<DeviceWork> work_;
};

/// What runs operations, and can do so in the thread that waits for one of them.
class OperationOwner {
 public:
  virtual ~OperationOwner() = default;
  /// Waits for an operation of this object. The outcome; nullopt when it is not there at the deadline.
  virtual std::optional<Status> wait(const Completion& completion,
                                     std::optional<std::chrono::steady_clock::time_point> deadline) = 0;
};

/// The handles of completions in the C interface: positive numbers, never used twice.
/// Threads  any.
class HandleTable {
 public:
  /// `owner`: what runs the operation.
  std::int64_t add(std::shared_ptr<Completion> completion, std::weak_ptr<OperationOwner> owner = {});
  /// Null for a handle that was never given or is released.
  std::shared_ptr<Completion> find(std::int64_t handle) const;
  /// Null also when the owner has been destroyed, and the operation has ended with it.
  std::shared_ptr<OperationOwner> owner(std::int64_t handle) const;
  void release(std::int64_t handle);

 private:
  mutable Mutex mutex_;
  std::int64_t next_ GUARDED_BY(mutex_) = 1;
  struct Entry {
    std::shared_ptr<Completion> completion;
    std::weak_ptr<OperationOwner> owner;
  };
  std::unordered_map<std::int64_t, Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
