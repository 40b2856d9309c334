#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "base/status.hpp"

namespace runjob::runtime {

/// The part of one operation that a device runs: from the submission on a stream of the caller, over the calls that a
/// backend queues for it, to the moment at which the device has done them.
///
/// Life     made at submission; launched by the driver, with one or more calls; done when the device is. A failure of
///          the job or of the device ends it too.
/// Owner    shared: the completion of the operation, and the backend until the work is done. It may outlive the
///          backend.
/// Threads  any.
class DeviceWork {
 public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  virtual ~DeviceWork() = default;

  /// Notes that all ranks have agreed on the operation, for reports.
  virtual void note_agreed() {}
  /// True once a call is queued for it. An operation that moves nothing never has one.
  virtual bool is_launched() const = 0;
  /// The outcome; nullopt while the device is at work. Does not wait.
  virtual std::optional<Status> outcome() = 0;
  /// Waits on the host; nullopt when the device is still at work at the deadline.
  virtual std::optional<Status> wait(Deadline deadline) = 0;
  /// Makes the later work of `stream` wait for the device, and returns at once. The work must be launched.
  /// Errors  the outcome, when that is known; kDevice.
  virtual Status wait_on(void* stream) = 0;
  /// Calls `notify` once, when there is an outcome, on a thread of the backend or on this one.
  virtual void on_done(std::function<void()> notify) = 0;
};

}  // namespace runjob::runtime
