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

std::chrono::steady_clock::duration Heartbeat::standstill() const {
  constexpr std::chrono::seconds kLately{30};  // the other side ends its ranks before it ends the channel
  using Duration = std::chrono::steady_clock::duration;
  const auto now = alarm_->now();
  if (running_ && now - due_ >= kLongestSilence) return now - due_;  // it has not been noticed yet
  return standstill_ > Duration() && now - standstill_end_ <= kLately ? standstill_ : Duration();
}

/// Counts intervals and not time: a process that was stopped itself must not blame the other side.
void Heartbeat::wait() {
  due_ = alarm_->now() + kInterval;
  alarm_->set(due_, [this] {
    const auto late = alarm_->now() - due_;
    if (late >= kLongestSilence) {
      standstill_ = late;
      standstill_end_ = alarm_->now();
    }
    if (++misses_ > kMostMisses) {
      running_ = false;
      return lost_();
    }
    beat_();
    if (running_) wait();
  });
}

}  // namespace runjob
