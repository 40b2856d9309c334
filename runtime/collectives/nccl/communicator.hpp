#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "runtime/collectives/cuda/gpu.hpp"
#include "runtime/collectives/nccl/nccl_library.hpp"
#include "runtime/collectives/nccl/shared_gpu.hpp"
#include "runtime/collectives/nccl/translation.hpp"

namespace runjob::runtime::nccl {

/// One of NCCL's communicators, in its blocking mode, on one GPU and one stream. NCCL's calls may hang when another
/// rank is gone; those that do run on threads of their own, which are given up after a time.
/// Life     constructed; set_up(); launch()...; stop() after a failure; destroyed.
/// Threads  one at a time, except that any may call check_health() and stop().
class Communicator {
 public:
  /// How long the destructor waits for NCCL.
  static constexpr std::chrono::milliseconds kRetireTime{300};

  Communicator(const Library& library, cuda::Gpu& gpu, cuda::Stream stream, int rank, int size);
  /// Lets NCCL free its memory on a separate thread, and waits for that thread for at most kRetireTime.
  ~Communicator();

  cuda::Stream stream() const { return stream_; }

  /// Connects all ranks, which have the same `id`.
  /// Errors  Error(kTimeout) after `timeout`; kAborted when `is_given_up` returns true; kDevice: NCCL's.
  void set_up(const UniqueId& id, std::chrono::milliseconds timeout, const std::function<bool()>& is_given_up);

  /// Queues a call, whose terms are given, on the stream. The GPU must be current, and its launch mutex held.
  /// Errors  Error(kDevice); kAborted once it is stopped.
  void launch(const Call& call, const Terms& terms);
  /// The same with several allreduces, as one operation of NCCL.
  void launch_together(std::span<const Call> calls, const Terms& terms);
  /// Throws what has failed since, without a call of ours; does not wait for a launch. Errors  Error(kDevice).
  void check_health() const;
  /// Ends NCCL's kernels of this communicator alone, and frees its memory: see SharedGpu.
  void stop();

 private:
  RedOp op_of(const Terms& terms);
  template <class Issue>
  void run_group(const char* what, int count, Issue issue);
  void scale(const Call& call, const Terms& terms);
  void allgather(const Call& call, const Terms& terms);
  void reducescatter(const Call& call, const Terms& terms);
  void alltoall(const Call& call, const Terms& terms);

  const Library& library_;
  cuda::Gpu& gpu_;
  const cuda::Stream stream_;
  const int rank_, size_;
  const std::shared_ptr<CommHandle> handle_ = std::make_shared<CommHandle>();
  std::map<std::pair<DataType, double>, RedOp> scaled_sums_;
};

}  // namespace runjob::runtime::nccl
