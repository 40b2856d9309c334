#pragma once

#include <memory>
#include <optional>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"
#include "runtime/collectives/shm/handover.hpp"
#include "runtime/collectives/shm/segment.hpp"
#include "runtime/collectives/shm/symmetric_heap.hpp"

namespace runjob::runtime {

/// Collectives of a job whose ranks are all on one host, through memory that they share. Rank 0 makes the segment and hands it to the others in connect().
/// A rank that cannot share says so in its address: all ranks ask objection_to_sharing(), and with an objection nobody
/// calls connect().
class ShmBackend : public Backend {
 public:
  /// Throws nothing but std::bad_alloc. `socket_directory`: see Handover.
  ShmBackend(const MeshOptions& options, const std::string& socket_directory);
  ~ShmBackend() override;

  std::string address() const override { return address_; }
  Status connect(const std::vector<std::string>& addresses) override;
  Status run(const Call& call) override;
  FusionAdvice fusion_advice() const override { return {.fuses_below = 64u << 10, .buffer_bytes = 1u << 20}; }
  std::shared_ptr<SymmetricHeap> symmetric_heap() const override { return heap_; }
  void abort(const Status& why) override;
  Rounds* rounds() override { return &channels_->rounds; }

 private:
  void prepare(const std::string& socket_directory);
  Segment exchange_segment(const std::vector<std::string>& addresses, double processors);
  Status fail(const Error& error, std::string_view what);

  const MeshOptions options_;
  const Layout layout_;
  std::string address_;
  std::unique_ptr<Handover> handover_;  ///< rank 0's, until all have come
  std::optional<EventFd> cancel_;       ///< connect() is to end
  Segment segment_;
  std::shared_ptr<SymmetricHeap> heap_;  ///< also of the memory that users have; null when there can be none
  std::unique_ptr<Channels> channels_;   ///< run()'s, but for what abort() does with the group

  Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  Group* group_ GUARDED_BY(mutex_) = nullptr;  ///< of channels_, once connected
};

}  // namespace runjob::runtime
