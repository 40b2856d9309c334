#include "runtime/engine/watcher.hpp"

#include <algorithm>
#include <pthread.h>
#include <utility>

namespace runjob::runtime {

Watcher::Watcher(EngineState& state, Execution& execution)
    : state_(state),
      execution_(execution),
      carries_records_(state.parts.rank != 0 && state.parts.members.process_set() == 0) {}

void Watcher::start() {
  if (carries_records_) state_.parts.timeline->shared().on_messages([this] { state_.poll.wake(); });
  thread_ = std::thread([this] { run(); });
}

void Watcher::join() {
  thread_.join();
}

void Watcher::run() {
  ::pthread_setname_np(::pthread_self(), "runjob-engine");
  ControlPlane& control = *state_.parts.control;
  while (!may_end(Clock::now())) {
    std::vector<pollfd> descriptors;
    control.watch(descriptors);
    state_.poll.wait(descriptors, {control.deadline(), farewell_due_, cause_due_});
    send_reports();
    control.on_events(descriptors, Clock::now());
    for (LifeDecision& decision : control.take()) decisions_.push_back(std::move(decision));
    std::erase_if(decisions_, [this](const LifeDecision& decision) { return apply(decision); });
    if (const Status why = take_outside_end(); !why.ok()) abort(why);
  }
}

/// True when this rank has called shutdown(), and the other ranks need nothing from it any more or had their time.
bool Watcher::may_end(Clock::time_point now) {
  const MutexLock lock(state_.mutex);
  if (!state_.farewell) return false;
  farewell_due_ = state_.farewell->due;
  return now >= *farewell_due_ || (state_.phase.phase() >= Phase::kReleased && !state_.is_working());
}

void Watcher::send_reports() {
  using Type = LifeReport::Type;
  std::vector<LifeReport> reports;
  {
    const MutexLock lock(state_.mutex);
    reports = std::exchange(state_.reports, {});
    if (state_.farewell && !std::exchange(is_goodbye_sent_, true))
      reports.push_back({.type = Type::kGoodbye, .status = state_.farewell->why});
    if (has_drained() && !std::exchange(is_drained_sent_, true)) reports.push_back({.type = Type::kDrained});
    if (state_.farewell && state_.rounds != nullptr && !state_.is_working()) state_.rounds->leave();
  }
  const bool is_last = std::any_of(reports.begin(), reports.end(), [](const LifeReport& report) {
    return report.type == Type::kGoodbye || report.type == Type::kDrained;
  });
  send_records(is_last);
  for (const LifeReport& report : reports) state_.parts.control->send(report);
}

/// Sends this rank's records to the rank that writes the file. `is_last`: that rank may take no more of them after
/// this.
void Watcher::send_records(bool is_last) {
  if (!carries_records_) return;
  Timeline& timeline = state_.parts.timeline->shared();
  if (is_last) timeline.drain();
  for (TraceShipment::Message& each : timeline.take_messages()) {
    LifeReport report;
    report.type = each.asks_clock ? LifeReport::Type::kClock : LifeReport::Type::kTrace;
    report.asked = each.asked;
    report.trace = std::move(each.records);
    state_.parts.control->send(report);
  }
}

/// True when a rank has sent a goodbye, and this rank needs nothing of the others any more.
bool Watcher::has_drained() const {
  return state_.phase.phase() == Phase::kLeaving && !state_.is_working() &&
         (state_.is_stopping() || state_.work.operations.empty());
}

/// False when the decision has to wait until this rank is connected.
bool Watcher::apply(const LifeDecision& decision) {
  switch (decision.type) {
    case LifeDecision::Type::kLeaving:
      if (!execution_.enter(PhaseEvent::kLeaving, decision.status)) return false;
      state_.poll.wake();  // this rank may have drained already
      return true;
    case LifeDecision::Type::kReleased:
      return execution_.enter(PhaseEvent::kReleased, Status(Errc::kAborted, "the job is over"));
    case LifeDecision::Type::kAbort:
      report_lost_connection(decision);
      on_failed(decision.status);
      return true;
    case LifeDecision::Type::kClock:
      state_.parts.timeline->shared().clock_answered(decision.asked, decision.clock);
      return true;
  }
  return true;
}

/// The launcher, which knows the ranks that have ended, decides whether the network or one of them has failed.
void Watcher::report_lost_connection(const LifeDecision& decision) const {
  const EngineParts& parts = state_.parts;
  const int lost = decision.lost >= 0 ? parts.members.rank(decision.lost) : parts.backend->lost_rank();
  if (lost >= 0 && parts.on_lost_connection) parts.on_lost_connection(lost, decision.status.message());
}

/// The coordinator has decided why the job ends. In a process set, the whole job may know a better cause.
void Watcher::on_failed(const Status& why) {
  constexpr auto kLongest = 2 * Coordinator::kVerdictGrace;
  std::function<bool(const Status&)> notify;
  {
    const MutexLock lock(state_.mutex);
    failure_ = why;
    notify = std::exchange(notify_, nullptr);
  }
  if (!notify || !notify(why)) {
    const Status cause = take_outside_end();  // the job may have ended already
    return abort(cause.ok() ? why : cause);
  }
  state_.parts.backend->abort(why);
  cause_due_ = Clock::now() + kLongest;
}

/// The cause that Engine::end() was given, or the failure when it has waited for one in vain; once. OK for neither.
Status Watcher::take_outside_end() {
  const MutexLock lock(state_.mutex);
  if (!state_.ended_outside.ok()) cause_due_.reset();
  if (!cause_due_ || Clock::now() < *cause_due_) return std::exchange(state_.ended_outside, {});
  cause_due_.reset();
  return failure_;
}

/// Ends everything at once.
void Watcher::abort(const Status& why) {
  state_.parts.backend->abort(why);  // first: then no rank reads a buffer that is given back to its owner
  execution_.enter(PhaseEvent::kEnd, why);
}

void Watcher::on_failure(std::function<bool(const Status&)> notify) {
  Status failure;
  {
    const MutexLock lock(state_.mutex);
    if (failure_.ok()) {
      notify_ = std::move(notify);
      return;
    }
    failure = failure_;
  }
  static_cast<void>(notify(failure));
}

}  // namespace runjob::runtime
