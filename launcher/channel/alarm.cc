#include "launcher/channel/alarm.hpp"

#include <cstdint>
#include <utility>

#include <boost/asio/steady_timer.hpp>

namespace runjob {
namespace {

class TimerAlarm : public Alarm {
 public:
  explicit TimerAlarm(boost::asio::any_io_executor executor) : timer_(std::move(executor)) {}

  TimePoint now() const override { return std::chrono::steady_clock::now(); }

  void set(TimePoint time, std::function<void()> call) override {
    call_ = std::move(call);
    timer_.expires_at(time);
    // A timer that has expired cannot be cancelled any more; the count finds its call out of date.
    timer_.async_wait([this, count = ++count_](boost::system::error_code error) {
      if (!error && count == count_) std::exchange(call_, {})();
    });
  }

  void cancel() override {
    ++count_;
    timer_.cancel();
  }

 private:
  boost::asio::steady_timer timer_;
  std::function<void()> call_;
  std::uint64_t count_ = 0;  // of the calls that were set or taken back
};

}  // namespace

std::unique_ptr<Alarm> make_alarm(boost::asio::any_io_executor executor) {
  return std::make_unique<TimerAlarm>(std::move(executor));
}

}  // namespace runjob
