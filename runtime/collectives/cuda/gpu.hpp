#pragma once

#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/cuda/driver.hpp"
#include "runtime/collectives/cuda/flight_record.hpp"

namespace runjob::runtime::cuda {

/// One GPU as this process uses it: the primary context, which the frameworks use too, and streams and events for
/// collectives, which are used again and again.
/// Owner    the process: never destroyed, because work on it may outlive every job.
/// Threads  any.
class Gpu {
 public:
  /// The GPU with this ordinal, among those that CUDA_VISIBLE_DEVICES leaves. The first call takes the primary context.
  /// Errors  Error(kInvalidArgument): there is no such GPU; kUnavailable: no driver; kDevice.
  static Gpu& of(int ordinal);

  int ordinal() const { return ordinal_; }
  Context context() const { return context_; }

  /// A stream of the highest priority, which waits for no other one by itself.
  Stream take_stream();
  void give_back(Stream stream);
  /// Held while calls are queued: several threads must not launch on one GPU at the same time.
  Mutex& launch_mutex() { return launch_mutex_; }
  FlightRecord& flights() { return flights_; }

  /// An event without a time. The context must be current.
  Event take_event();
  void give_back(Event event);
  /// The number of events that have been made so far.
  std::size_t events_made() const;

  /// "GPU 1 (GPU-6a1f..., NVIDIA H200)"
  std::string text() const;
  std::string uuid() const { return uuid_; }
  std::string name() const { return name_; }

 private:
  explicit Gpu(int ordinal);

  const int ordinal_;
  std::string uuid_, name_;
  Context context_ = nullptr;
  Mutex launch_mutex_;
  FlightRecord flights_;
  mutable Mutex mutex_;
  std::vector<Stream> free_streams_ GUARDED_BY(mutex_);
  std::vector<Event> free_events_ GUARDED_BY(mutex_);
  std::size_t events_made_ GUARDED_BY(mutex_) = 0;
};

/// Makes the GPU's context current in this thread, and lets its calls pass while a stream of the caller is being
/// captured into a graph; afterwards both are as they were.
class CurrentGpu {
 public:
  explicit CurrentGpu(const Gpu& gpu);
  ~CurrentGpu();
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  CaptureMode mode_ = kCaptureRelaxed;
};

/// check(), with the GPU in the text.
void check(const Gpu& gpu, Result result, const char* action);
/// The reason why `memory` is no memory of the GPU's: it is the host's, another GPU's, or has been freed; empty when it
/// is the GPU's, which must be current.
std::string objection(const Gpu& gpu, const void* memory);

/// A GPU for people, without a context.
struct GpuText {
  std::string uuid, name;
};
/// The GPUs of this process. Errors  as driver().
std::vector<GpuText> list_gpus();

}  // namespace runjob::runtime::cuda
