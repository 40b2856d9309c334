#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "launcher/channel/alarm.hpp"

namespace runjob {

/// Notices for one side that the other side, or the network between the two, is lost: a cut cable ends no connection.
/// Both sides beat once in each interval. A side that has received nothing for kMostMisses intervals gives the other
/// one up. The launcher begins, on channels that a network carries, and the agent answers its beats with its own.
/// Owner    the owner of the channel, until the loop has ended.
/// Threads  the loop's one thread.
class Heartbeat {
 public:
  using Callback = std::function<void()>;

  static constexpr std::chrono::seconds kInterval{1};
  static constexpr int kMostMisses = 5;
  /// A rank notices a host that is silent after SilenceWatch::kLimit, and the launcher then waits for
  /// RankSupervisor::kCulpritPatience. This time must be shorter than both together, 9 s: else the launcher blames the
  /// network and not the host.
  static constexpr auto kLongestSilence = kMostMisses * kInterval;

  /// `beat` sends a kHeartbeat frame. `lost` is called once, when the other side has been silent for too long.
  Heartbeat(std::unique_ptr<Alarm> alarm, Callback beat, Callback lost);

  /// Begins, or goes on after pause(). Has no effect while it is beating.
  void start();

  /// Nothing is sent or expected until start().
  void pause();

  /// Call it whenever anything has been received.
  void on_sign_of_life() { misses_ = 0; }

  /// The length of the latest time in which this process itself did not run, because it was stopped or had no
  /// processor. It is 0 if there was none of at least kLongestSilence, or if that ended more than 30 s ago. After such
  /// a time the other side has given this process up.
  std::chrono::steady_clock::duration standstill() const;

 private:
  void wait();

  std::unique_ptr<Alarm> alarm_;
  Callback beat_;
  Callback lost_;
  Alarm::TimePoint due_{};                            // of the next beat, while running
  std::chrono::steady_clock::duration standstill_{};  // the latest one of kLongestSilence or more
  Alarm::TimePoint standstill_end_{};
  int misses_ = 0;  // intervals without a sign of life
  bool running_ = false;
};

}  // namespace runjob
