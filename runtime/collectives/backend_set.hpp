#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "runtime/collectives/device_backend.hpp"

namespace runjob::runtime {

/// The backends of an engine: that of the host, and that of the devices, which is made for the first tensor of a
/// device. Until then nothing of a device's libraries is opened. Decides which backend runs a call.
/// Owner    of both.
/// Threads  run() one caller at a time; the rest any.
/// Errors   values.
class BackendSet {
 public:
  using OnFailure = std::function<void(const Status&)>;
  /// Makes the backend of the devices. `host` is lent, and outlives it; `on_failure`: see DeviceOptions.
  /// Errors  Error(kUnavailable): there is no driver, no device, or no module.
  using MakeDevice = std::function<std::unique_ptr<DeviceBackend>(DataBackend& host, OnFailure on_failure)>;

  /// Without `make_device` every tensor of a device is an error.
  explicit BackendSet(std::unique_ptr<Backend> host, MakeDevice make_device = {});

  Backend& host() const { return *host_; }
  /// The backend of the devices, which the first call makes. Null, with the reason in `why`, when that fails, and when
  /// abort() came before.
  DeviceBackend* device(Status& why);
  /// The same, but null when it is not made.
  DeviceBackend* made_device() const { return made_.load(std::memory_order_acquire); }

  /// Runs a call, or several of a device that have all but their tensors in common.
  Status run(std::span<const Call> calls);
  /// The allocator of the backend that runs calls in memory of this kind; null for ordinary memory of the host.
  std::shared_ptr<BufferAllocator> buffers(MemoryKind kind);

  /// `report` is called on any thread when a device fails outside of a call. To be set once, before the first tensor.
  void on_failure(OnFailure report);
  /// DeviceBackend::outcome() and unfinished(); OK and empty while no device is used.
  std::optional<Status> device_outcome() const;
  std::string unfinished() const;
  void abort(const Status& why);

 private:
  const std::unique_ptr<Backend> host_;
  const MakeDevice make_device_;
  Mutex mutex_;
  OnFailure report_ GUARDED_BY(mutex_);
  std::optional<Status> aborted_ GUARDED_BY(mutex_);
  std::unique_ptr<DeviceBackend> device_ GUARDED_BY(mutex_);
  std::atomic<DeviceBackend*> made_{nullptr};  ///< `device_`, once it is there
};

}  // namespace runjob::runtime
