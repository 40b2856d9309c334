#include "launcher/channel/alarm.hpp"

#include <cstdint>
#include <utility>

#include <boost/asio/steady_timer.hpp>

namespace runjob {
namespace {

class TimerAlarm : public Alarm {
 public:
  TimerAlarm(boost::asio::any_io_executor executor, const StoppedTime& stopped)
      : timer_(std::move(executor)), stopped_(stopped) {}

  TimePoint now() const override { return std::chrono::steady_clock::now() - stopped_.total; }

  void set(TimePoint time, std::function<void()> call) override {
    call_ = std::move(call);
    time_ = time;
    wait();
  }

  void cancel() override {
    ++count_;
    timer_.cancel();
  }

 private:
  void wait() {
    timer_.expires_at(time_ + stopped_.total);
    // A timer that has expired cannot be cancelled any more; the count finds its call out of date.
    timer_.async_wait([this, count = ++count_](boost::system::error_code error) {
      if (error || count != count_) return;
      if (now() < time_) return wait();  // the job was stopped meanwhile
      std::exchange(call_, {})();
    });
  }

  boost::asio::steady_timer timer_;
  const StoppedTime& stopped_;
  TimePoint time_;
  std::function<void()> call_;
  std::uint64_t count_ = 0;  // of the calls that were set or taken back
};

}  // namespace

std::unique_ptr<Alarm> make_alarm(boost::asio::any_io_executor executor) {
  static const StoppedTime none;
  return make_alarm(std::move(executor), none);
}

std::unique_ptr<Alarm> make_alarm(boost::asio::any_io_executor executor, const StoppedTime& stopped) {
  return std::make_unique<TimerAlarm>(std::move(executor), stopped);
}

}  // namespace runjob
