#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "runtime/collectives/backend.hpp"

namespace runjob::runtime {

/// A buffer of an operation on a device.
struct DeviceBuffer {
  const void* memory = nullptr;
  std::size_t tensor = 0;  ///< the index of its tensor in a group
};

/// An operation on tensors of a device as begin_work() gets it. All of it is lent.
struct DeviceSubmission {
  Device device;
  std::string_view name;
  Kind kind = Kind::kAllreduce;
  int process_set = 0;
  std::span<const DeviceBuffer> buffers;  ///< the inputs and outputs that have elements
  std::size_t tensors = 1;                ///< their number
};

/// Runs collectives on memory of devices among the ranks of an engine, in the order of run(), which is the same on all
/// of them. It is made when the first tensor of a device is submitted. The ranks connect in the first call.
/// Threads  one caller at a time, except that any thread may call begin_work(), only_queues(), memory(), outcome(),
///          unfinished() and abort().
/// Errors   values only, because it lives in a module of its own: no exception leaves it.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  /// Begins an operation on tensors of a device, on the thread that submits it: later work of the caller's stream is
  /// not part of its input. `work` stays null for a backend whose calls block until the device is done.
  /// Errors  kInvalidArgument for a buffer that is not the device's.
  virtual Status begin_work(const DeviceSubmission& submission, std::shared_ptr<DeviceWork>& work) = 0;
  /// The reason why no rank runs this call, although all have agreed on it; OK when they run it. `call` has no buffers.
  /// Asked once for each tensor of an operation, before the first of its calls, in the same order on all ranks. The
  /// answer is the same on all of them, and may need an exchange among them.
  virtual Status refusal(const Call& call) = 0;
  /// Blocks until the calls are queued on the device, or until it is done with those that have no work. Several calls
  /// are allreduces that have all but their tensors in common; they run as one where the device can. After a failure
  /// every later call fails too.
  virtual Status run(std::span<const Call> calls) = 0;
  /// run() of a call like this one waits neither for a device nor for another rank, so that the thread that submits an
  /// operation may launch it too.
  virtual bool only_queues(const Call& call) const = 0;
  /// The memory of the device for results and zeros; null when there is no device.
  virtual std::shared_ptr<BufferAllocator> memory() const = 0;
  /// The outcome of everything that devices do for this backend: nullopt while one of them is at work. When a job ends,
  /// what was done before stays done. Does not wait.
  virtual std::optional<Status> outcome() const = 0;
  /// The first operation that a device of this rank has not finished, and how far it has come, for people; after a
  /// failure, as it was then. Empty for none.
  virtual std::string unfinished() const = 0;
  /// Ends the running call and all later ones with `why`, soon and without waiting for it.
  virtual void abort(const Status& why) = 0;
};

/// The terms on which the devices of a job are used.
struct DeviceTerms {
  /// The ranks may belong to other meshes too, whose operations on the same devices must have one order on all ranks.
  bool shares_ranks = false;
  /// How long a device may be at work on one operation before that is reported, and before the job ends; 0: for ever.
  std::chrono::milliseconds stall_warning{60000}, stall_failure{0};
};

/// The parts from which a backend of devices is made, when the first tensor of a device is submitted.
struct DeviceOptions {
  MeshOptions mesh;
  DeviceTerms terms;
  DataBackend* host = nullptr;  ///< lent: carries the exchanges among the ranks in which they agree on a communicator
  std::function<void(const Status&)> on_failure;
  /// Writes a line for people to the log: a warning, or else information. A module has no log of its own.
  std::function<void(bool is_warning, const std::string& line)> log;
};

/// The table that the module of the GPUs exports under kDevicePluginSymbol. As BackendPlugin, `build` must match.
struct DevicePlugin {
  const char* build;
  Status (*create)(const DeviceOptions& options, std::unique_ptr<DeviceBackend>& backend);
  /// A JSON document on the libraries behind the module: {"nccl": {"available", "version", "version_code", "path",
  /// "reason"}, "cuda": {..., "gpus": [...]}}. Makes no context. Lent until the next call.
  const char* (*description)();
  /// The reason why this process can take part in no further job, because a GPU is still at work for one that has
  /// failed; empty for none. Waits for a few seconds while that may still end. Lent until the next call.
  const char* (*leftover)();
};
inline constexpr char kDevicePluginSymbol[] = "runjob_device_plugin";

}  // namespace runjob::runtime
