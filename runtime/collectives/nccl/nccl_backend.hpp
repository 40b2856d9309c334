#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/cuda/gpu_memory.hpp"
#include "runtime/collectives/device_backend.hpp"
#include "runtime/collectives/nccl/agreement.hpp"
#include "runtime/collectives/nccl/in_flight_works.hpp"
#include "runtime/collectives/nccl/staged_run.hpp"

namespace runjob::runtime::nccl {

/// Collectives on GPUs: NCCL's, on tensors where they lie. run() queues a call and returns. Each rank uses one GPU,
/// that of its first tensor. Allreduces that are run together are one operation of NCCL. At the first call all ranks
/// exchange their offers over the host's backend and come to one verdict: communicators, or copies through the host
/// for all calls. With communicators, all ranks refuse calls that NCCL cannot express.
///
/// Errors   A failure ends all works in flight, and every later call.
/// Threads  as DeviceBackend.
class NcclBackend final : public DeviceBackend {
 public:
  NcclBackend(DeviceOptions options, NcclSettings settings);
  ~NcclBackend() override;

  Status begin_work(const DeviceSubmission& submission, std::shared_ptr<DeviceWork>& work) override;
  Status refusal(const Call& call) override;
  Status run(std::span<const Call> calls) override;
  bool only_queues(const Call& call) const override;
  std::shared_ptr<BufferAllocator> memory() const override;
  std::optional<Status> outcome() const override;
  std::string unfinished() const override;
  void abort(const Status& why) override;

 private:
  /// The GPU of this rank, and what this backend uses on it.
  struct Place {
    cuda::Gpu& gpu;
    const cuda::Stream stream;  ///< of the communicator, and of copies through the host
    const std::shared_ptr<cuda::GpuMemory> memory;
  };

  Place& usable_place(std::optional<int> ordinal) const;
  Place& place(std::optional<int> ordinal) const REQUIRES(mutex_);
  Place& agreed_place();
  void note_launch_failure(const Status& why);
  using Works = std::span<const std::shared_ptr<cuda::Work>>;  ///< one for each call
  Status run(std::span<const Call> calls, Works works, Place& place);
  void queue(std::span<const Call> calls, Works works, Place& place);
  void queue_staged(std::span<const Call> calls, Works works, Place& place);
  static void launch(Communicator& communicator, std::span<const Call> calls, const Terms& terms, Place& place,
                     Works works);
  void check_health();
  std::optional<Status> failure() const;
  void end_works(const Status& why);

  const DeviceOptions options_;
  const NcclSettings settings_;
  mutable Mutex mutex_;
  mutable std::unique_ptr<Place> place_ GUARDED_BY(mutex_);  ///< from the first tensor on, and then the same
  std::optional<Status> failure_ GUARDED_BY(mutex_);
  std::optional<Status> launch_failure_ GUARDED_BY(mutex_);        ///< before the job has failed with that or its cause
  std::shared_ptr<Communicator> communicator_ GUARDED_BY(mutex_);  ///< null when all calls go through the host
  const Library* library_ GUARDED_BY(mutex_) = nullptr;            ///< with the communicator
  std::string unfinished_ GUARDED_BY(mutex_);                      ///< when the failure came
  bool is_ordered_ GUARDED_BY(mutex_) = false;                     ///< some rank may have communicators beside this one
  bool has_agreed_ = false;            ///< the caller's of run(): the ranks have come to their verdict
  std::unique_ptr<StagedRun> staged_;  ///< the caller's of run(); null while there is a communicator
  InFlightWorks works_;
};

}  // namespace runjob::runtime::nccl
