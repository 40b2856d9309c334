#include "runtime/engine/watcher.hpp"

#include <algorithm>
#include <pthread.h>
#include <utility>

#include <fmt/format.h>

#include "runtime/life/goodbye.hpp"

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
  std::optional<Clock::time_point> look;
  while (!may_end(Clock::now())) {
    std::vector<pollfd> descriptors;
    control.watch(descriptors);
    watch_visitors(descriptors);
    const auto set_due = check_ends_of_sets(Clock::now());
    state_.poll.wait(descriptors, {control.deadline(), farewell_due_, cause_due_, look, set_due, visitors_again_});
    take_visitors(descriptors);
    look = next_look();  // before the decisions: a device that ends after them is looked at again
    send_reports();
    control.on_events(descriptors, Clock::now());
    for (LifeDecision& decision : control.take()) decisions_.push_back(std::move(decision));
    std::erase_if(decisions_, [this](const LifeDecision& decision) { return apply(decision); });
    if (const Status why = take_outside_end(); !why.ok()) abort(why);
  }
  if (!is_over_) send_reports();  // the goodbye, when this thread had no processor before the time was over
  report_cut_off();
}

void Watcher::watch_visitors(std::vector<pollfd>& descriptors) {
  const MutexLock lock(state_.mutex);
  if (visitors_again_ && Clock::now() >= *visitors_again_) visitors_again_.reset();
  watches_visitors_ = visitors_.listener >= 0 && !visitors_again_ && !state_.is_stopping() && !state_.phase.is_ended();
  if (watches_visitors_) descriptors.push_back({visitors_.listener, POLLIN, 0});
}

void Watcher::take_visitors(std::vector<pollfd>& descriptors) {
  constexpr std::chrono::milliseconds kLookAgain{50};  // by then somebody has accepted them
  if (!watches_visitors_) return;
  const bool has_any = descriptors.back().revents != 0;
  descriptors.pop_back();
  if (!has_any) return;
  visitors_again_ = Clock::now() + kLookAgain;
  std::function<void()> notify;
  {
    const MutexLock lock(state_.mutex);
    notify = visitors_.notify;
  }
  notify();
}

/// True when this rank has called shutdown(), and the other ranks need nothing from it any more or had their time.
bool Watcher::may_end(Clock::time_point now) {
  constexpr std::chrono::milliseconds kLookAgain{10};
  const MutexLock lock(state_.mutex);
  if (!state_.farewell) return false;
  farewell_due_ = state_.farewell->due;
  if (now >= *farewell_due_) {
    if (is_over_ || now >= *farewell_due_ + kMostForNetwork || !has_unacknowledged()) return true;
    farewell_due_ = now + kLookAgain;
  }
  if (state_.phase.phase() < Phase::kReleased || state_.is_working() || state_.has_device_work()) return false;
  return is_over_ || !state_.owes_device_work();  // for this rank the job has ended when its own rounds have
}

/// True while another host does not have all that this rank has sent to it.
bool Watcher::has_unacknowledged() const {
  return state_.parts.control->has_unacknowledged() ||
         (state_.rounds != nullptr && state_.rounds->traffic().has_unacknowledged);
}

/// The time of the next look, while this rank or another one leaves: at devices that are at work, and at ranks of this
/// host that leave, which only this one can announce to other hosts. Neither notifies anybody.
std::optional<Watcher::Clock::time_point> Watcher::next_look() {
  constexpr std::chrono::milliseconds kAtDevices{2}, kAtRanks{20};
  const MutexLock lock(state_.mutex);
  const bool is_left = is_being_left_ && !is_over_;
  const bool more_may_leave = is_left && state_.rounds != nullptr && state_.rounds->announce_departures();
  if ((state_.is_stopping() || is_left) && state_.has_device_work()) return Clock::now() + kAtDevices;
  return more_may_leave ? std::optional(Clock::now() + kAtRanks) : std::nullopt;
}

/// Notifies the other ranks when this one goes before its part in their devices' work is done.
void Watcher::report_cut_off() {
  Status why;
  {
    const MutexLock lock(state_.mutex);
    if (is_over_ || !state_.owes_device_work()) return;
    why = state_.farewell->why.ok() ? goodbye_reason(state_.self, Goodbye::kShutdown) : state_.farewell->why;
  }
  const std::string unfinished = state_.parts.backends->unfinished();
  state_.parts.control->send(
      {.type = LifeReport::Type::kCutOff,
       .status = Status(why.code(), fmt::format("{} before its part in all operations was done{}{}", why.message(),
                                                unfinished.empty() ? "" : "; the first one is on ", unfinished))});
}

void Watcher::send_reports() {
  using Type = LifeReport::Type;
  std::vector<LifeReport> reports;
  {
    const MutexLock lock(state_.mutex);
    reports = std::exchange(state_.reports, {});
    for (const LifeReport& report : reports) {
      if (report.type == Type::kGiveUp && report.process_set != 0) await_end_of_set(report.process_set);
    }
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

/// True when a rank has sent a goodbye, and this rank needs nothing of the others any more. Its own rounds may have
/// ended since.
bool Watcher::has_drained() const {
  if (carries_records_ && state_.parts.timeline->shared().awaits_clock()) return false;
  return is_being_left_ && !is_over_ && !state_.is_working() &&
         (state_.is_stopping() || state_.work.operations.empty()) && !state_.has_device_work();
}

/// False when the decision has to wait until this rank is connected.
bool Watcher::apply(const LifeDecision& decision) {
  switch (decision.type) {
    case LifeDecision::Type::kLeaving:
      if (!execution_.enter(PhaseEvent::kLeaving, decision.status)) return false;
      is_being_left_ = true;
      state_.poll.wake();  // this rank may have drained already
      return true;
    case LifeDecision::Type::kReleased:
      is_over_ = true;
      return execution_.enter(PhaseEvent::kReleased, Status(Errc::kAborted, "the job is over"));
    case LifeDecision::Type::kAbort:
      report_lost_connection(decision);
      report_stall(decision);
      on_failed(decision.status);
      return true;
    case LifeDecision::Type::kClock:
      state_.parts.timeline->shared().clock_answered(decision.asked, decision.clock);
      return true;
    case LifeDecision::Type::kAsk:
      answer_waits();
      return true;
    case LifeDecision::Type::kGiveUp:
      return end_set(decision);
  }
  return true;
}

/// The launcher, which knows the ranks that have ended, decides whether the network or one of them has failed.
void Watcher::report_lost_connection(const LifeDecision& decision) const {
  const EngineParts& parts = state_.parts;
  const int lost = decision.lost >= 0 ? parts.members.rank(decision.lost) : parts.backends->host().lost_rank();
  if (lost >= 0 && parts.on_lost_connection) parts.on_lost_connection(lost, decision.status.message());
}

/// Before an operation of this rank ends because of the stall: the launcher then knows the cause of the rank's end.
void Watcher::report_stall(const LifeDecision& decision) const {
  if ((decision.late >= 0 || decision.is_mutual) && state_.parts.on_stall_ends_job)
    state_.parts.on_stall_ends_job(decision.late, decision.status.message());
}

/// False while this rank is not connected.
bool Watcher::end_set(const LifeDecision& decision) {
  {
    const MutexLock lock(state_.mutex);
    if (state_.phase.phase() == Phase::kConnecting) return false;
    state_.given_up[decision.process_set] = decision.status;
  }
  std::shared_ptr<Completion> barrier = announce_end_of_set_(decision.process_set);
  if (!barrier) {
    ends_of_sets_.erase(decision.process_set);
    return true;
  }
  await_end_of_set(decision.process_set);
  ends_of_sets_[decision.process_set].barrier = std::move(barrier);
  return true;
}

void Watcher::await_end_of_set(int process_set) {
  ends_of_sets_.try_emplace(process_set, EndOfSet{nullptr, Clock::now() + kGiveUpLimit});
}

/// Ends the engine when a set has not ended in time, unless that has to wait only for operations of other sets. Returns
/// the time of the next look.
std::optional<Watcher::Clock::time_point> Watcher::check_ends_of_sets(Clock::time_point now) {
  constexpr std::chrono::milliseconds kLookAgain{100};
  std::optional<Clock::time_point> next;
  std::erase_if(ends_of_sets_, [](const auto& each) { return each.second.barrier && each.second.barrier->done(); });
  for (auto& [set, end] : ends_of_sets_) {
    if (is_over_) return std::nullopt;
    if (now >= end.due) {
      const MutexLock lock(state_.mutex);
      end.due = now + kLookAgain;
      if (!state_.work.operations.runs_other_than(set)) {
        const Status& why = state_.given_up.at(set);
        state_.report(
            {.type = LifeReport::Type::kGiveUp,
             .status = Status(why.code(), fmt::format("{}; the set has data under way or a rank that does not "
                                                      "answer, so that all sets of these ranks end",
                                                      why.message()))});
        end.due = now + Member::kDecisionLimit + kLookAgain;
      }
    }
    next = next ? std::min(*next, end.due) : end.due;
  }
  return next;
}

void Watcher::on_given_up(std::function<std::shared_ptr<Completion>(int process_set)> announce) {
  announce_end_of_set_ = std::move(announce);
}

void Watcher::answer_waits() {
  std::function<std::vector<Wait>()> waits_of_sets;
  LifeReport answer{.type = LifeReport::Type::kWaits};
  {
    const MutexLock lock(state_.mutex);
    answer.waits = state_.waits();
    waits_of_sets = waits_of_sets_;
  }
  if (waits_of_sets) {
    for (Wait& wait : waits_of_sets()) answer.waits.push_back(std::move(wait));
  }
  const MutexLock lock(state_.mutex);
  state_.report(std::move(answer));
}

void Watcher::on_asked(std::function<std::vector<Wait>()> waits) {
  const MutexLock lock(state_.mutex);
  waits_of_sets_ = std::move(waits);
}

/// The coordinator has decided why the job ends. In a process set, the whole job may know a better cause. A set that
/// this rank leaves anyway ends alone: an abort would end the devices' work for other sets too.
void Watcher::on_failed(const Status& why) {
  constexpr auto kLongest = 2 * Coordinator::kVerdictGrace;
  std::function<bool(const Status&)> notify;
  bool is_alone = false;
  {
    const MutexLock lock(state_.mutex);
    failure_ = why;
    notify = std::exchange(notify_, nullptr);
    is_alone = state_.is_stopping() && state_.parts.members.process_set() != 0 && !state_.is_working();
  }
  if (is_alone) {
    is_over_ = true;
    execution_.enter(PhaseEvent::kEnd, why);
    return;
  }
  if (!notify || !notify(why)) {
    const Status cause = take_outside_end();  // the job may have ended already
    return abort(cause.ok() ? why : cause);
  }
  is_over_ = true;
  state_.parts.backends->abort(why);
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
  is_over_ = true;
  state_.parts.backends->abort(why);  // first: then no rank reads a buffer that is given back to its owner
  execution_.enter(PhaseEvent::kEnd, why);
}

void Watcher::on_visitors(int listener, std::function<void()> notify) {
  const MutexLock lock(state_.mutex);
  visitors_ = {listener, std::move(notify)};
  state_.poll.wake();
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
