#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/collectives/backend.hpp"

namespace runjob::runtime {

/// Several backends of the same ranks as one: each call goes to the first backend that supports it. The ranks reach the
/// same choice, because supports() depends only on what they have agreed on.
/// Owner    of all its backends.
/// Threads  as Backend.
/// Source   the choice in order of priority is that of Horovod's OperationManager.
class BackendSet : public Backend {
 public:
  /// `data` are tried in their order, before `base`, whose rounds carry the negotiation.
  BackendSet(std::unique_ptr<Backend> base, std::vector<std::unique_ptr<DataBackend>> data);

  /// The addresses of all backends as one; that of the base where the others have none, because they connect later.
  std::string address() const override;
  /// Connects one backend after the other, in the same order on all ranks.
  Status connect(const std::vector<std::string>& addresses) override;
  bool supports(const Call& call) const override;
  std::string objection(const Call& call) const override;
  Status begin_work(const DeviceSubmission& submission, std::shared_ptr<DeviceWork>& work) override;
  Status refusal(const Call& call) override;
  Status run(const Call& call) override;
  Status run_together(std::span<const Call> calls) override;
  bool only_queues(const Call& call) const override;
  /// That of the base, for tensors in host memory.
  FusionAdvice fusion_advice() const override { return base_->fusion_advice(); }
  std::shared_ptr<BufferAllocator> buffers(MemoryKind kind) const override;
  void on_failure(std::function<void(const Status&)> report) override;
  std::optional<Status> device_outcome() const override;
  std::string unfinished() const override;
  void abort(const Status& why) override;
  Rounds& rounds() override { return base_->rounds(); }
  int lost_rank() const override { return base_->lost_rank(); }

 private:
  bool has_own_addresses() const;
  DataBackend* backend_of(const Call& call) const;

  const std::unique_ptr<Backend> base_;
  const std::vector<std::unique_ptr<DataBackend>> data_;
  const std::vector<DataBackend*> all_;  ///< in the order in which they are tried: `base_` is the last one
};

}  // namespace runjob::runtime
