#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "launcher/channel/alarm.hpp"

namespace runjob {

/// A clock that stands still until the test moves it, for the alarms that it makes. It outlives them.
class ManualClock {
 public:
  using TimePoint = Alarm::TimePoint;

  TimePoint now() const { return now_; }

  std::unique_ptr<Alarm> make_alarm() { return std::make_unique<ManualAlarm>(*this); }

  /// Moves the time, and makes the calls that are due by then in the order of their times.
  void advance(std::chrono::steady_clock::duration by) {
    const TimePoint end = now_ + by;
    for (;;) {
      const auto next = std::min_element(alarms_.begin(), alarms_.end(),
                                         [](const ManualAlarm* a, const ManualAlarm* b) { return a->time < b->time; });
      if (next == alarms_.end() || (*next)->time > end) break;
      now_ = std::max(now_, (*next)->time);
      (*next)->time = TimePoint::max();
      std::exchange((*next)->call, {})();
    }
    now_ = end;
  }

  /// Moves the time as it is for a process that is stopped: calls that are due by then are all made at its end.
  void stand_still(std::chrono::steady_clock::duration by) {
    now_ += by;
    advance({});
  }

  /// The number of alarms with a pending call.
  int pending() const {
    return static_cast<int>(std::count_if(alarms_.begin(), alarms_.end(),
                                          [](const ManualAlarm* each) { return each->time != TimePoint::max(); }));
  }

 private:
  struct ManualAlarm : Alarm {
    explicit ManualAlarm(ManualClock& its_clock) : clock(its_clock) { clock.alarms_.push_back(this); }
    ~ManualAlarm() override { std::erase(clock.alarms_, this); }
    TimePoint now() const override { return clock.now_; }
    void set(TimePoint when, std::function<void()> what) override {
      time = when;
      call = std::move(what);
    }
    void cancel() override { time = TimePoint::max(); }

    ManualClock& clock;
    TimePoint time = TimePoint::max();
    std::function<void()> call;
  };

  TimePoint now_{};
  std::vector<ManualAlarm*> alarms_;
};

}  // namespace runjob
