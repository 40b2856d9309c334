#pragma once

#include <memory>

#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/gloo/gloo_context.hpp"

namespace runjob::runtime {

/// Collectives over TCP with Gloo. What Gloo ends the process for (empty or mismatching buffers) never reaches it: the engine
/// and negotiation see to it. After a failure the mesh is useless, as Gloo's contexts are, and every later
/// call fails alike.
class GlooBackend : public Backend {
 public:
  /// Errors  what Gloo throws: std::exception.
  explicit GlooBackend(const MeshOptions& options);
  ~GlooBackend() override;

  std::string address() const override { return context_->addresses(); }
  Status connect(const std::vector<std::string>& addresses) override;
  Status run(const Call& call) override;
  FusionAdvice fusion_advice() const override { return kNetworkFusion; }
  void abort(const Status& why) override;

 private:
  void allreduce(const Call& call);
  void allgather(const Call& call);
  void broadcast(const Call& call);
  void reducescatter(const Call& call);
  void exchange(const void* input, const std::vector<std::size_t>& send, void* output,
                const std::vector<std::size_t>& receive, std::size_t element_bytes);

  const MeshOptions options_;
  std::shared_ptr<GlooContext> context_;  // shared with Gloo's options objects while a collective runs
  std::uint32_t tag_ = 0;                 ///< of the next collective, the same on every rank

  Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  std::vector<Endpoint> own_ GUARDED_BY(mutex_), peers_ GUARDED_BY(mutex_);  ///< of the mesh's connections
};

}  // namespace runjob::runtime
