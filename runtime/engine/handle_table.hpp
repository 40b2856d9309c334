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
#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

class Engine;

/// The outcome of one operation, once it is there.
/// Owner    shared: the caller's handle and the engine that will finish it; either may go first.
/// Threads  any.
class Completion {
 public:
  /// What an operation leaves that has no buffer of the caller's for it.
  struct Result {
    Shape shape;                         ///< empty: there is none
    const void* data = nullptr;          ///< dense: `bytes`, or the caller's room
    std::unique_ptr<std::byte[]> bytes;  ///< null when the caller had room
    Shape received_splits;               ///< alltoall: rows from each rank
    std::vector<Result> tensors = {};    ///< of a group
  };

  /// Once. The caller shares this object until it returns: a waiter may let go of it at once.
  void finish(Status status) { finish(std::move(status), {}); }
  void finish(Status status, Result result);

  bool done() const { return done_.load(std::memory_order_acquire); }
  /// The outcome; nullopt when it is not there after `timeout`. Without a timeout, waits for ever.
  std::optional<Status> wait(std::optional<std::chrono::duration<double>> timeout) const;

  /// What to call when it is done, at once when it is: once, by the thread that finishes it, with no lock held.
  /// Errors  Error(kInvalidArgument) for a second one.
  void on_finish(std::function<void()> notify);

  /// Of a finished operation; lent as long as this lives.
  const Result& result() const;

 private:
  mutable Mutex mutex_;
  mutable ConditionVariable finished_;
  std::function<void()> notify_ GUARDED_BY(mutex_);
  std::atomic<bool> done_{false};  ///< set under the mutex
  // Written before `done_`, and never again.
  Status status_;
  Result result_;
};

/// Numbers for completions that cross the C interface: positive, never used twice.
/// Threads  any.
class HandleTable {
 public:
  /// `engine`: whose it is.
  std::int64_t add(std::shared_ptr<Completion> completion, std::weak_ptr<Engine> engine = {});
  /// Null for a number that was never given or is released.
  std::shared_ptr<Completion> find(std::int64_t handle) const;
  /// Null as well when the engine is gone, and the operation therefore done.
  std::shared_ptr<Engine> engine(std::int64_t handle) const;
  void release(std::int64_t handle);

 private:
  mutable Mutex mutex_;
  std::int64_t next_ GUARDED_BY(mutex_) = 1;
  struct Entry {
    std::shared_ptr<Completion> completion;
    std::weak_ptr<Engine> engine;
  };
  std::unordered_map<std::int64_t, Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
