#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "runtime/collectives/cuda/gpu.hpp"
#include "runtime/collectives/nccl/nccl_library.hpp"
#include "runtime/collectives/nccl/translation.hpp"

namespace runjob::runtime::nccl {

/// One of NCCL's communicators, in its blocking mode, on one GPU and one stream. NCCL's calls may hang when another
/// rank is gone; those that do run on threads of their own, which are given up after a time.
/// Life     constructed; set_up(); launch()...; stop() after a failure; destroyed.
/// Threads  one at a time, except that check_health() and stop() may be called by any.
class Communicator {
 public:
  /// How long the destructor waits for NCCL, and how long stop() waits for a launch.
  static constexpr std::chrono::milliseconds kRetireTime{300}, kLaunchTime{100};

  Communicator(const Library& library, cuda::Gpu& gpu, cuda::Stream stream, int rank, int size);
  /// Lets NCCL free its memory: on a thread of its own, which is waited for for kRetireTime.
  ~Communicator();

  /// Connects all ranks, which have the same `id`.
  /// Errors  Error(kTimeout) after `timeout`; kAborted when `is_given_up` returns true; kDevice: NCCL's.
  void set_up(const UniqueId& id, std::chrono::milliseconds timeout, const std::function<bool()>& is_given_up);

  /// Queues a call, whose terms are given, on the stream. The GPU must be current, and its launch mutex held.
  /// Errors  Error(kDevice); kAborted after stop().
  void launch(const Call& call, const Terms& terms);
  /// The same with several allreduces, as one operation of NCCL.
  void launch_together(std::span<const Call> calls, const Terms& terms);
  /// Throws what has failed since, without a call of ours; does not wait for a launch. Errors  Error(kDevice).
  void check_health() const;
  /// Ends NCCL's kernels and frees its memory, on a thread of its own. Does not wait for it.
  void stop();

 private:
  /// What threads that are given up still use.
  struct Handle {
    Comm comm = nullptr;  ///< NCCL writes it before it blocks in set-up; so it is read as an atomic
    Result result = kSuccess;
    std::atomic<bool> is_stopped{false};  ///< `comm` must not be used any more
    Comm load() const { return __atomic_load_n(&comm, __ATOMIC_ACQUIRE); }
  };

  RedOp op_of(const Terms& terms);
  template <class Issue>
  void run_group(const char* what, int count, Issue issue);
  void allgather(const Call& call, const Terms& terms);
  void reducescatter(const Call& call, const Terms& terms);
  void alltoall(const Call& call, const Terms& terms);

  const Library& library_;
  cuda::Gpu& gpu_;
  const cuda::Stream stream_;
  const int rank_, size_;
  const std::shared_ptr<Handle> handle_ = std::make_shared<Handle>();
  std::map<std::pair<DataType, double>, RedOp> scaled_sums_;
  std::atomic<bool> is_stopping_{false};  ///< the thread of stop() frees the memory, and not the destructor
};

}  // namespace runjob::runtime::nccl
