#pragma once

#include <memory>
#include <optional>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/shm/channels.hpp"
#include "runtime/collectives/shm/memory/handover.hpp"
#include "runtime/collectives/shm/memory/segment.hpp"
#include "runtime/collectives/shm/memory/symmetric_heap.hpp"

namespace runjob::runtime {

/// The settings of shared memory alone.
struct ShmOptions {
  bool cma = true;               ///< ranks may read each other's memory through the kernel
  bool symmetric_memory = true;  ///< users may allocate memory that the ranks reach directly
  /// For a process set: the buffers of its job's backend, if there are any; MeshOptions::names has the job's ranks.
  /// Null: the ranks are all of the job's, and create the memory.
  std::shared_ptr<BufferAllocator> job_buffers = nullptr;
};

/// Collectives of ranks on one host, through memory that they share. Rank 0 makes the segment and hands it over to the
/// others in connect(). The address of a rank that cannot share memory carries the reason. All ranks call
/// agree_on_mesh(); when they agree on other groups than this one, no rank calls connect().
///
/// Owner    owns the segment, the channels and, with the ranks' buffers, the symmetric heap.
/// Threads  as Backend: one caller at a time, abort() from any thread.
/// Errors   as Backend: Status values.
class ShmBackend : public Backend {
 public:
  /// `socket_directory`: see Handover. Errors  only std::bad_alloc; other failures become part of the address.
  ShmBackend(const MeshOptions& options, const std::string& socket_directory, ShmOptions shm = {});
  ~ShmBackend() override;

  std::string address() const override { return address_; }
  Status connect(const std::vector<std::string>& addresses) override;
  Status run(const Call& call) override;
  FusionAdvice fusion_advice() const override { return {.fuses_below = 64u << 10, .buffer_bytes = 1u << 20}; }
  std::shared_ptr<BufferAllocator> buffers() const override { return heap_; }
  void abort(const Status& why) override;
  Rounds& rounds() override { return channels_->rounds; }

 private:
  void prepare(const std::string& socket_directory);
  Segment exchange_segment(const std::vector<std::string>& addresses, double processors);
  Status fail(const Error& error, std::string_view operation);

  const MeshOptions options_;
  const ShmOptions shm_;
  const Layout layout_;
  std::string address_;
  std::unique_ptr<Handover> handover_;  ///< of rank 0, until all ranks have the segment
  std::optional<EventFd> cancel_;       ///< readable when connect() has to end
  Segment segment_;
  std::shared_ptr<SymmetricHeap> heap_;  ///< shared with the users' buffers; null if there can be none
  std::unique_ptr<Channels> channels_;   ///< used by run() alone, except for the group in abort()

  Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  Group* group_ GUARDED_BY(mutex_) = nullptr;  ///< the group of channels_, once connected
};

}  // namespace runjob::runtime
