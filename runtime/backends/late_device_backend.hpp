#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"

namespace runjob::runtime {

/// The backend of the GPUs of a job, which is made when the first tensor of a GPU is submitted: until then nothing of
/// CUDA is opened. It has no address, because its ranks agree on a connection when they first need one.
/// Threads  as DataBackend; begin_work() and buffers() any.
class LateDeviceBackend : public DataBackend {
 public:
  /// Makes the backend. Errors  Error(kUnavailable): there is no driver, no GPU, or no module.
  using Make = std::function<std::unique_ptr<DataBackend>(const DeviceOptions& options)>;

  /// `host` is lent: the backend of the job, for the exchanges among the ranks.
  LateDeviceBackend(Make make, MeshOptions mesh, const DeviceTerms& terms, DataBackend& host);

  std::string address() const override { return {}; }
  Status connect(const std::vector<std::string>&) override { return {}; }
  bool supports(const Call& call) const override;
  std::string objection(const Call& call) const override;
  Status begin_work(const DeviceSubmission& submission, std::shared_ptr<DeviceWork>& work) override;
  Status refusal(const Call& call) override;
  Status run(const Call& call) override;
  Status run_together(std::span<const Call> calls) override;
  bool only_queues(const Call& call) const override;
  std::shared_ptr<BufferAllocator> buffers(MemoryKind kind) const override;
  void on_failure(std::function<void(const Status&)> report) override;
  std::optional<Status> device_outcome() const override;
  std::string unfinished() const override;
  void abort(const Status& why) override;

 private:
  DataBackend& made() const;

  const Make make_;
  const MeshOptions mesh_;
  const DeviceTerms terms_;
  DataBackend& host_;
  mutable Mutex mutex_;
  std::function<void(const Status&)> report_ GUARDED_BY(mutex_);
  std::optional<Status> aborted_ GUARDED_BY(mutex_);
  mutable std::unique_ptr<DataBackend> owned_ GUARDED_BY(mutex_);
  mutable std::atomic<DataBackend*> made_{nullptr};  ///< `owned_`, once it is there
};

}  // namespace runjob::runtime
