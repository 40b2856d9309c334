#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/cuda/driver.hpp"
#include "runtime/collectives/cuda/flight_record.hpp"

namespace runjob::runtime::cuda {

/// One GPU as this process uses it: the primary context, which the frameworks use too, and streams and events for
/// collectives, which are kept and given out again.
/// Owner    the process: never destroyed, because work on it may outlive every job. A stream or an event belongs to the
///          caller from take_...() to give_back().
/// Threads  any.
/// Errors   Error(kDevice) from take_stream() and take_event(), naming the action.
class Gpu {
 public:
  /// The GPU with this ordinal, among those that CUDA_VISIBLE_DEVICES leaves. The first call for a GPU takes its
  /// primary context.
  /// Errors  Error(kInvalidArgument): there is no such GPU; kUnavailable: no driver; kDevice.
  static Gpu& of(int ordinal);

  int ordinal() const { return ordinal_; }
  Context context() const { return context_; }

  /// A stream of the highest priority. It does not wait for the default stream, nor that for it.
  Stream take_stream();
  void give_back(Stream stream);
  /// Held while calls are queued: several threads must not launch on one GPU at the same time.
  Mutex& launch_mutex() { return launch_mutex_; }
  FlightRecord& flights() { return flights_; }

  /// An event that measures no time. The context must be current: see CurrentGpu.
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

/// Makes the GPU's context current in this thread until it is destroyed, and permits this thread's calls while the
/// caller captures a stream into a graph. The destructor restores both.
/// Errors  Error(kDevice) from the constructor.
class CurrentGpu {
 public:
  explicit CurrentGpu(const Gpu& gpu);
  ~CurrentGpu();
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  CaptureMode mode_ = kCaptureRelaxed;
};

/// check() of driver.hpp, with the GPU in the text: throws Error(kDevice) unless `result` is a success.
void check(const Gpu& gpu, Result result, const char* action);
/// The reason why `memory` is no memory of the GPU's: it is the host's, another GPU's, or has been freed; empty when it
/// is the GPU's. The GPU's context must be current.
/// Errors  Error(kDevice).
std::string objection(const Gpu& gpu, const void* memory);

/// A GPU for people, without a context.
struct GpuText {
  std::string uuid, name;
};
/// The GPUs of this process. Errors  as driver().
std::vector<GpuText> list_gpus();

}  // namespace runjob::runtime::cuda
