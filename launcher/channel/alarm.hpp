#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

namespace runjob {

/// A clock that makes one call at a later time. Tests replace it by one that they move themselves.
/// Owner    outlives the loop's run, like everything that the call refers to.
/// Threads  the loop's one thread.
class Alarm {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Alarm() = default;

  virtual TimePoint now() const = 0;

  /// Makes `call` from the loop once now() has reached `time`. Replaces the call that was set before.
  virtual void set(TimePoint time, std::function<void()> call) = 0;

  /// Takes back the call that was set, if it has not been made.
  virtual void cancel() = 0;
};

/// An alarm over a timer of the loop.
std::unique_ptr<Alarm> make_alarm(boost::asio::any_io_executor executor);

/// How long a job has been stopped (Ctrl-Z) so far.
struct StoppedTime {
  std::chrono::steady_clock::duration total{};
};

/// The same, for a clock that stands still while the job is stopped: what is added to `stopped`, which outlives the
/// alarm, does not count. A call that is set already comes later by it.
std::unique_ptr<Alarm> make_alarm(boost::asio::any_io_executor executor, const StoppedTime& stopped);

}  // namespace runjob
