#pragma once

#include <memory>

#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/gloo/gloo_context.hpp"
#include "runtime/collectives/transport.hpp"

namespace runjob::runtime {

/// Gloo's collectives over a transport of ours. Gloo would end the process for empty or mismatching buffers. They never
/// reach it, because the engine completes empty ones and the negotiation rejects mismatches. After a failure every
/// later call fails with the same status.
class GlooBackend : public DataBackend {
 public:
  /// `transport`: not connected yet; it reaches every rank with long messages.
  GlooBackend(const MeshOptions& options, std::unique_ptr<Transport> transport);

  std::string address() const override { return transport_->address(); }
  Status connect(const std::vector<std::string>& addresses) override;
  Status run(const Call& call) override;
  void abort(const Status& why) override;

 private:
  void allreduce(const Call& call);
  void allgather(const Call& call);
  void broadcast(const Call& call);
  void reducescatter(const Call& call);
  void exchange(const void* input, const std::vector<std::size_t>& send, void* output,
                const std::vector<std::size_t>& receive, std::size_t element_bytes);

  Status kept(const Status& status);

  const MeshOptions options_;
  const std::unique_ptr<Transport> transport_;
  std::shared_ptr<GlooContext> context_;  // shared with Gloo's options objects while a collective runs
  std::uint32_t tag_ = 0;                 ///< the next collective's, the same on every rank

  Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
