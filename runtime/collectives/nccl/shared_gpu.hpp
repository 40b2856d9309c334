#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/cuda/gpu.hpp"
#include "runtime/collectives/device_backend.hpp"
#include "runtime/collectives/nccl/launch_order.hpp"
#include "runtime/collectives/nccl/nccl_library.hpp"

namespace runjob::runtime::nccl {

/// One of NCCL's communicators, with what threads that are given up still use of it.
struct CommHandle {
  Comm comm = nullptr;  ///< NCCL writes it before it blocks in set-up; so it is read as an atomic
  Result result = kSuccess;
  std::atomic<bool> is_stopping{false};  ///< the thread that stops it frees its memory, and nobody else
  std::atomic<bool> is_stopped{false};   ///< `comm` must not be used any more
  Comm load() const { return __atomic_load_n(&comm, __ATOMIC_ACQUIRE); }
};

/// What all communicators of one GPU in this process share: the order of their launches, and their end. A failure ends
/// all of them: the abort flag of each is set first, and only then are they reclaimed, because that may wait for the
/// kernels of the others (NCCL's pull request 564).
/// Owner    the process: never destroyed, because NCCL's calls may never return.
/// Threads  any.
class SharedGpu {
 public:
  using Handles = std::vector<std::shared_ptr<CommHandle>>;
  /// Takes a warning for people. It may be called after the job has ended.
  using Warn = std::function<void(const std::string& line)>;

  /// How long a launch may keep communicators from being stopped, and how long NCCL has to give all of them back.
  static constexpr std::chrono::milliseconds kLaunchTime{100}, kReclaimTime{5000};

  static SharedGpu& of(cuda::Gpu& gpu);

  LaunchOrder& order() { return order_; }

  void add(std::shared_ptr<CommHandle> handle);
  void remove(const std::shared_ptr<CommHandle>& handle);
  /// Stops and reclaims these communicators, on threads of its own. Does not wait for it. What has not come back after
  /// kReclaimTime is given up with a warning.
  void stop(const Library& library, Handles handles, Warn warn);
  /// A backend that uses this GPU: `end_works` ends all of its works with a reason, on any thread, until leave().
  void join(const void* backend, std::function<void(const Status& why)> end_works);
  void leave(const void* backend);
  /// Ends the works of all backends with `why`, then stops all communicators that there are: the kernels of a stopped
  /// one end, and their results must not be taken for valid.
  void stop_all(const Library& library, const Status& why, Warn warn);

  /// The stream for a backend's collectives. `is_common`: the same one for all that ask so, because two streams may
  /// begin their work in another order than that of the launches.
  cuda::Stream take_stream(bool is_common);
  /// Takes it back. `is_idle`: false after a failure, when there may be work on it that does not end.
  void give_back(cuda::Stream stream, bool is_idle);
  /// The reason why this GPU cannot be used any more: work of a job that has failed does not end. Empty for none. Waits
  /// for at most kReclaimTime while that may still end.
  std::string leftover();
  /// That of the first GPU of this process that has one.
  static std::string any_leftover();

  /// The operation that this GPU has not finished within the limits of `terms`, with its reason; empty for none, and
  /// when the same warning was given before.
  /// Errors  Error(kTimeout): the limit after which the job ends has passed.
  std::string stall(const DeviceTerms& terms);

 private:
  explicit SharedGpu(cuda::Gpu& gpu) : gpu_(gpu) {}

  void tell(const Library& library, const Handles& handles) const;
  void run_stop(const Library& library, const Handles& handles) const;
  bool has_work();

  cuda::Gpu& gpu_;
  LaunchOrder order_;
  Mutex backends_mutex_;  ///< taken before all others
  std::map<const void*, std::function<void(const Status&)>> backends_ GUARDED_BY(backends_mutex_);
  Mutex mutex_;
  ConditionVariable stopped_;
  Handles handles_ GUARDED_BY(mutex_);
  cuda::Stream common_ GUARDED_BY(mutex_) = nullptr;  ///< null while nobody uses it
  int common_users_ GUARDED_BY(mutex_) = 0;
  bool is_common_idle_ GUARDED_BY(mutex_) = true;
  int stopping_ GUARDED_BY(mutex_) = 0;                    ///< calls of stop() that have not ended
  std::vector<cuda::Stream> given_up_ GUARDED_BY(mutex_);  ///< streams of jobs that have failed
  std::chrono::steady_clock::time_point warned_ GUARDED_BY(mutex_), inspected_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime::nccl
