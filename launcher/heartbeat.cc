#include "launcher/heartbeat.hpp"

#include <utility>

namespace runjob {

Heartbeat::Heartbeat(boost::asio::any_io_executor executor, Callback beat, Callback lost,
                     std::chrono::milliseconds interval)
    : timer_(executor), beat_(std::move(beat)), lost_(std::move(lost)), interval_(interval) {}

void Heartbeat::start() {
  if (std::exchange(running_, true)) return;
  misses_ = 0;
  beat_();
  if (running_) wait();
}

void Heartbeat::pause() {
  running_ = false;
  timer_.cancel();
}

/// Counts intervals rather than time: a process that was stopped itself does not blame the other side.
void Heartbeat::wait() {
  timer_.expires_after(interval_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error || !running_) return;
    if (++misses_ > kMostMisses) {
      running_ = false;
      return lost_();
    }
    beat_();
    if (running_) wait();
  });
}

}  // namespace runjob
