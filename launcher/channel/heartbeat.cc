#include "launcher/channel/heartbeat.hpp"

#include <utility>

namespace runjob {

Heartbeat::Heartbeat(std::unique_ptr<Alarm> alarm, Callback beat, Callback lost)
    : alarm_(std::move(alarm)), beat_(std::move(beat)), lost_(std::move(lost)) {}

void Heartbeat::start() {
  if (std::exchange(running_, true)) return;
  misses_ = 0;
  beat_();
  if (running_) wait();
}

void Heartbeat::pause() {
  running_ = false;
  alarm_->cancel();
}

/// Counts intervals and not time: a process that was stopped itself must not blame the other side.
void Heartbeat::wait() {
  alarm_->set(alarm_->now() + kInterval, [this] {
    if (++misses_ > kMostMisses) {
      running_ = false;
      return lost_();
    }
    beat_();
    if (running_) wait();
  });
}

}  // namespace runjob
