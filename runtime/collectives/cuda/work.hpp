#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/cuda/gpu.hpp"
#include "runtime/collectives/device/device_work.hpp"
#include "runtime/collectives/device_backend.hpp"

namespace runjob::runtime::cuda {

/// One operation on a GPU: an event of the caller's stream, which marks that its input is complete, and one of a stream
/// of the collectives, which marks its end.
/// Threads  as DeviceWork; begin_launch() and end_launch() the launching thread, with the GPU's context current.
class Work : public DeviceWork {
 public:
  /// For an operation whose input is complete when the work that is now in its stream is done.
  /// Errors  Error(kInvalidArgument): the stream is being captured, or a buffer is not the GPU's; kDevice.
  static std::shared_ptr<Work> submitted(Gpu& gpu, const DeviceSubmission& submission);
  /// For a call whose input is complete already.
  explicit Work(Gpu& gpu) : gpu_(gpu) {}
  ~Work() override;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  Gpu& gpu() const { return gpu_; }

  /// Begins a call: makes `stream`, on which the call is to run, wait for the input, and for earlier calls of the
  /// operation. After such calls it is not launched again until end_launch().
  /// Errors  Error(kDevice).
  void begin_launch(Stream stream);
  /// Marks the end of what has been queued on `stream` so far. May be called again after more calls.
  void end_launch(Stream stream);
  /// Ends it with `why`, unless it is done.
  void fail(const Status& why);
  /// Ends it with `why` although its event may be complete: it was launched beside a failure, which ends kernels.
  void fail_launched(const Status& why);
  /// Called by the backend's watcher for the first work that is not done: notes in the GPU's record that its input is
  /// complete.
  void note_begun();
  /// Called by the backend's watcher: calls the callbacks when there is an outcome; returns true then.
  bool notify_if_done();

  void note_agreed() override { gpu_.flights().reach(flight_, FlightRecord::Step::kAgreed); }
  bool is_launched() const override { return is_launched_.load(std::memory_order_acquire); }
  std::optional<Status> outcome() override;
  std::optional<Status> wait(Deadline deadline) override;
  Status wait_on(void* stream) override;
  void on_done(std::function<void()> notify) override;

 private:
  Gpu& gpu_;
  std::uint64_t flight_ = 0;  ///< its number in the GPU's record; 0 for none
  Event ready_ = nullptr, done_ = nullptr;
  std::atomic<bool> is_launched_{false};
  Mutex mutex_;
  std::optional<Status> outcome_ GUARDED_BY(mutex_);
  std::vector<std::function<void()>> callbacks_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime::cuda
