#include "runtime/engine/watcher.hpp"

#include <future>

#include "tests/catch.hpp"
#include "tests/runtime/device_stand_in.hpp"
#include "tests/runtime/engine/lone_state.hpp"

using namespace runjob::runtime;
using runjob::ConditionVariable;
using runjob::Errc;
using runjob::Mutex;
using runjob::MutexLock;
using runjob::Status;
using Decided = LifeDecision::Type;
using Reported = LifeReport::Type;

namespace {

/// A control plane whose other side is the test.
class ScriptedControl : public ControlPlane {
 public:
  void send(const LifeReport& report) override {
    const MutexLock lock(mutex_);
    sent_.push_back(report.type);
    last_ = report.status;
    changed_.notify_all();
  }
  void watch(std::vector<pollfd>&) const override {}
  void on_events(std::span<const pollfd>, Clock::time_point) override {}
  std::optional<Clock::time_point> deadline() const override { return std::nullopt; }
  std::vector<LifeDecision> take() override {
    const MutexLock lock(mutex_);
    ++turns_;
    changed_.notify_all();
    return std::exchange(decisions_, {});
  }

  bool has_unacknowledged() const override {
    const MutexLock lock(mutex_);
    ++questions_;
    changed_.notify_all();
    return !is_acknowledged_;
  }

  void decide(LifeDecision decision) {
    const MutexLock lock(mutex_);
    decisions_.push_back(std::move(decision));
  }
  void set_acknowledged(bool is_acknowledged) {
    const MutexLock lock(mutex_);
    is_acknowledged_ = is_acknowledged;
  }
  /// Waits until has_unacknowledged() was called so often.
  void wait_questions(int count) {
    const MutexLock lock(mutex_);
    while (questions_ < count) changed_.wait(mutex_);
  }
  /// Waits until that many reports were sent: their types.
  std::vector<Reported> wait_sent(std::size_t count) {
    const MutexLock lock(mutex_);
    while (sent_.size() < count) changed_.wait(mutex_);
    return sent_;
  }
  Status last() const {
    const MutexLock lock(mutex_);
    return last_;
  }
  /// Waits until the watcher, which is woken, has taken decisions once more.
  void wait_turn(WakeablePoll& poll) {
    const MutexLock lock(mutex_);
    const int before = turns_;
    poll.wake();
    while (turns_ == before) changed_.wait(mutex_);
  }

 private:
  mutable Mutex mutex_;
  mutable ConditionVariable changed_;
  mutable int questions_ GUARDED_BY(mutex_) = 0;
  bool is_acknowledged_ GUARDED_BY(mutex_) = true;
  Status last_ GUARDED_BY(mutex_);  ///< of what was sent
  std::vector<Reported> sent_ GUARDED_BY(mutex_);
  std::vector<LifeDecision> decisions_ GUARDED_BY(mutex_);
  int turns_ GUARDED_BY(mutex_) = 0;
};

/// A device, which is at work until the test changes it.
class ScriptedDevice : public StandInBackend {
 public:
  using StandInBackend::StandInBackend;

  std::optional<Status> outcome() const override {
    const MutexLock lock(mutex_);
    if (looks_ > 0 && --looks_ == 0) outcome_ = Status();
    return outcome_;
  }
  std::string unfinished() const override { return "GPU 0: allreduce 'x'"; }
  void set_outcome(std::optional<Status> outcome) {
    const MutexLock lock(mutex_);
    outcome_ = std::move(outcome);
  }
  /// The device is at work until so many looks at it.
  void work_for(int looks) {
    const MutexLock lock(mutex_);
    looks_ = looks;
    outcome_ = std::nullopt;
  }

 private:
  mutable Mutex mutex_;
  mutable int looks_ GUARDED_BY(mutex_) = 0;
  mutable std::optional<Status> outcome_ GUARDED_BY(mutex_) = Status();
};

EngineParts scripted_parts() {
  const auto make_device = [](DataBackend& host, const BackendSet::OnFailure&) {
    return std::make_unique<ScriptedDevice>(std::make_shared<StandInMemory>(), host);
  };
  EngineParts parts = lone_parts(std::make_unique<LocalBackend>(), 1, make_device);
  parts.control = std::make_unique<ScriptedControl>();
  return parts;
}

/// A watcher that runs until the test ends.
struct Watched {
  explicit Watched(bool is_connected = true, bool is_started = true) {
    if (is_connected) set_running(state);
    if (is_started) watcher.start();
  }
  ~Watched() {
    if (!watcher.is_running()) return;
    stop();
    control.decide({.type = Decided::kAbort, .status = Status(Errc::kAborted, "the test is over")});
    state.poll.wake();
    watcher.join();
  }

  void decide(LifeDecision decision) {
    control.decide(std::move(decision));
    state.poll.wake();
  }
  void stop(std::chrono::milliseconds most = std::chrono::minutes(1)) {
    const MutexLock lock(state.mutex);
    if (!state.farewell) state.farewell = {Status(), Watcher::Clock::now() + most};
    state.poll.wake();
  }
  Phase phase() {
    const MutexLock lock(state.mutex);
    return state.phase.phase();
  }
  void wait_phase(Phase phase) {
    const MutexLock lock(state.mutex);
    while (state.phase.phase() != phase) state.changed.wait(state.mutex);
  }

  std::int32_t value = 1;
  EngineState state{scripted_parts()};
  ScriptedControl& control = static_cast<ScriptedControl&>(*state.parts.control);
  ScriptedDevice& device = device_of<ScriptedDevice>(*state.parts.backends);
  Execution execution{state};
  Watcher watcher{state, execution};
};

}  // namespace

TEST_CASE("a rank that stops sends its goodbye, drains when the job leaves, and ends when it is released",
          "[runtime][unit]") {
  Watched rank;
  rank.stop();
  CHECK(rank.control.wait_sent(1) == std::vector{Reported::kGoodbye});
  rank.decide({.type = Decided::kLeaving, .status = Status(Errc::kAborted, "rank 0 called shutdown()")});
  CHECK(rank.control.wait_sent(2) == std::vector{Reported::kGoodbye, Reported::kDrained});
  rank.decide({.type = Decided::kReleased});
  rank.watcher.join();
  CHECK(rank.phase() == Phase::kReleased);
}

TEST_CASE("a rank goes when its time is over, whatever the others do", "[runtime][unit]") {
  Watched rank;
  rank.stop(std::chrono::milliseconds(0));
  rank.watcher.join();
  CHECK(rank.phase() == Phase::kRunning);
}

TEST_CASE("a rank whose time was over before its watcher got a processor sends its goodbye all the same",
          "[runtime][unit]") {
  Watched rank(/*is_connected=*/true, /*is_started=*/false);
  rank.stop(std::chrono::milliseconds(0));
  rank.watcher.start();
  rank.watcher.join();
  CHECK(rank.control.wait_sent(1) == std::vector{Reported::kGoodbye});
}

TEST_CASE("a rank whose time is over stays until the other hosts have its last bytes", "[runtime][unit]") {
  Watched rank;
  rank.control.set_acknowledged(false);
  rank.stop(std::chrono::milliseconds(0));
  auto end = std::async(std::launch::async, [&] { rank.watcher.join(); });
  rank.control.wait_questions(3);
  CHECK(end.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  rank.control.set_acknowledged(true);
  end.get();
  CHECK(rank.phase() == Phase::kRunning);
}

TEST_CASE("a rank drains and goes when its device is done, although nobody notifies it of that", "[runtime][unit]") {
  Watched rank;
  rank.device.set_outcome(std::nullopt);
  rank.stop();
  rank.decide({.type = Decided::kLeaving, .status = Status(Errc::kAborted, "rank 0 called shutdown()")});
  rank.wait_phase(Phase::kLeaving);
  for (int i = 0; i < 3; ++i) rank.control.wait_turn(rank.state.poll);
  CHECK(rank.control.wait_sent(1) == std::vector{Reported::kGoodbye});
  rank.device.set_outcome(Status());
  CHECK(rank.control.wait_sent(2) == std::vector{Reported::kGoodbye, Reported::kDrained});
  rank.decide({.type = Decided::kReleased});
  rank.watcher.join();
  CHECK(rank.control.wait_sent(2).size() == 2);
}

TEST_CASE("a rank drains when its device is done, at whatever time that is between its looks", "[runtime][unit]") {
  for (int looks = 1; looks <= 12; ++looks) {
    INFO(looks);
    Watched rank;
    rank.device.work_for(looks);
    rank.stop();
    rank.decide({.type = Decided::kLeaving, .status = Status(Errc::kAborted, "rank 0 called shutdown()")});
    CHECK(rank.control.wait_sent(2) == std::vector{Reported::kGoodbye, Reported::kDrained});
  }
}

TEST_CASE("a rank that goes before all on its device is done notifies the others", "[runtime][unit]") {
  Watched rank;
  SECTION("the device is at work") {
    rank.device.set_outcome(std::nullopt);
  }
  SECTION("the device has failed") {
    rank.device.set_outcome(Status(Errc::kDevice, "gone"));
  }
  SECTION("an operation is not on the device yet") {
    Submission submission = sum_of("x", rank.value);
    submission.signature.memory = MemoryKind::kDevice;
    put(rank.state, std::move(submission));
  }
  rank.stop(std::chrono::milliseconds(20));
  rank.watcher.join();
  CHECK(rank.control.wait_sent(2) == std::vector{Reported::kGoodbye, Reported::kCutOff});
  CHECK(
      rank.control.last().message() ==
      "rank 0 on a called shutdown() before its part in all operations was done; the first one is on GPU 0: allreduce "
      "'x'");
}

TEST_CASE("a rank with an operation in flight drains when that is done", "[runtime][unit]") {
  Watched rank;
  put(rank.state, sum_of("x", rank.value));
  {
    const MutexLock lock(rank.state.mutex);
    rank.state.work.open_role();  // the rounds may complete it
  }
  rank.decide({.type = Decided::kLeaving, .status = Status(Errc::kAborted, "left")});
  rank.wait_phase(Phase::kLeaving);
  {
    const MutexLock lock(rank.state.mutex);
    CHECK(rank.state.work.operations.take("x"));
    rank.state.poll.wake();
  }
  CHECK(rank.control.wait_sent(1) == std::vector{Reported::kDrained});
}

TEST_CASE("a rank whose own rounds have ended since another one has left drains too", "[runtime][unit]") {
  Watched rank;
  put(rank.state, sum_of("x", rank.value));
  {
    const MutexLock lock(rank.state.mutex);
    rank.state.work.open_role();
  }
  rank.decide({.type = Decided::kLeaving, .status = Status(Errc::kAborted, "left")});
  rank.wait_phase(Phase::kLeaving);
  {
    const MutexLock lock(rank.state.mutex);
    rank.state.work.close_role();
  }
  rank.execution.enter(PhaseEvent::kEnd, Status(Errc::kAborted, "left"));  // as Driver::close_rounds() does
  rank.state.poll.wake();
  CHECK(rank.control.wait_sent(1) == std::vector{Reported::kDrained});
}

TEST_CASE("a rank that connects learns afterwards that another one has left", "[runtime][unit]") {
  Watched rank(/*is_connected=*/false);
  rank.decide({.type = Decided::kLeaving, .status = Status(Errc::kAborted, "left")});
  for (int i = 0; i < 2; ++i) rank.control.wait_turn(rank.state.poll);  // in the second, those of the first are applied
  CHECK(rank.phase() == Phase::kConnecting);
  SECTION("when it is connected") {
    set_running(rank.state);
    rank.state.poll.wake();
    rank.wait_phase(Phase::kLeaving);
  }
  SECTION("unless the job ends before") {
    rank.decide({.type = Decided::kAbort, .status = Status(Errc::kPeerLost, "rank 1 is gone")});
    rank.wait_phase(Phase::kEnded);
  }
}

TEST_CASE("reports of this rank are sent, in their order", "[runtime][unit]") {
  Watched rank;
  {
    const MutexLock lock(rank.state.mutex);
    rank.state.report(Reported::kFailed, Status(Errc::kTimeout, "slow"));
    rank.state.report(Reported::kSetFailed, Status(Errc::kTimeout, "slower"));
  }
  CHECK(rank.control.wait_sent(2) == std::vector{Reported::kFailed, Reported::kSetFailed});
}

TEST_CASE("an abort ends the operations with its reason", "[runtime][unit]") {
  Watched rank;
  const auto completion = put(rank.state, sum_of("x", rank.value));
  rank.decide({.type = Decided::kAbort, .status = Status(Errc::kPeerLost, "rank 1 is gone")});
  CHECK(outcome(*completion).message() == "rank 1 is gone");
  Status told;
  rank.watcher.on_failure([&](const Status& why) {
    told = why;
    return false;
  });
  CHECK(told.message() == "rank 1 is gone");
}

TEST_CASE("a failure that is announced outside waits for the cause from there", "[runtime][unit]") {
  Watched rank;
  std::promise<std::string> told;
  rank.watcher.on_failure([&](const Status& why) {
    told.set_value(why.message());
    return true;
  });
  const auto completion = put(rank.state, sum_of("x", rank.value));
  rank.decide({.type = Decided::kAbort, .status = Status(Errc::kTimeout, "too slow")});
  CHECK(told.get_future().get() == "too slow");
  CHECK_FALSE(completion->done());
  {
    const MutexLock lock(rank.state.mutex);
    rank.state.ended_outside = Status(Errc::kPeerLost, "rank 7 is gone");
    rank.state.poll.wake();
  }
  CHECK(outcome(*completion).message() == "rank 7 is gone");
}
