#include <algorithm>
#include <pthread.h>
#include <utility>

#include "runtime/engine/engine.hpp"

/// The life of the job: what the thread "runjob-engine" does.
namespace runjob::runtime {
namespace {

/// Leaves room within the second that shutdown() may take for ending the backend.
constexpr std::chrono::milliseconds kFarewell{800};

}  // namespace

void Engine::watch_job() {
  ::pthread_setname_np(::pthread_self(), "runjob-engine");
  while (!may_stop(Clock::now())) {
    const Negotiation* negotiation = parts_.control->negotiation();
    const bool has_waiting = negotiation != nullptr && !negotiation->idle();  // never with rounds
    const auto due = has_waiting ? stalls_.next(Clock::now()) : std::nullopt;
    std::vector<pollfd> descriptors;
    parts_.control->watch(descriptors);
    poll_.wait(descriptors, {parts_.control->deadline(), stop_deadline_, cause_due_, due, window_end()});
    send_local_events();
    parts_.control->on_events(descriptors, Clock::now());
    for (const Decision& decision : parts_.control->take()) {
      apply(decision);
      if (decision.ends_message) hand_over_message();
    }
    if (const Status why = take_end(); !why.ok()) abort(why);
    if (due && Clock::now() >= *due) tell(stalls_.inspect(Clock::now(), negotiation->waiting(), negotiation->last()));
  }
}

/// When what was submitted is to be said to the coordinator.
std::optional<Engine::Clock::time_point> Engine::window_end() {
  if (parts_.cycle_time.count() == 0) return std::nullopt;
  const MutexLock lock(mutex_);
  return has_rounds_ ? std::nullopt : window_.closes(Clock::now());
}

/// Shutdown was asked for, and the other ranks need nothing from this one any more or had their time.
bool Engine::may_stop(Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (!stop_) return false;
  if (!stop_deadline_) stop_deadline_ = now + kFarewell;
  return now >= *stop_deadline_ || ((phase_ == Phase::kEnded || is_released_) && !is_working());
}

/// Tells the coordinator what happened on this rank.
void Engine::send_local_events() {
  std::vector<RankMessage> messages;
  bool marks_cycle = false;
  {
    const MutexLock lock(mutex_);
    if (!has_rounds_) {
      const bool may_wait = phase_ == Phase::kRunning && !stop_ && window_.closes(Clock::now());
      if (phase_ == Phase::kRunning && !submitted_.empty() && !may_wait) {
        messages.push_back({RankMessage::Type::kSubmit, take_submitted(), {}});
        marks_cycle = true;
      }
      if (!may_wait) submitted_.clear();
    }
    for (Status& failure : std::exchange(failures_, {})) {
      messages.push_back({RankMessage::Type::kFailed, {}, std::move(failure)});
    }
    for (Status& failure : std::exchange(set_failures_, {})) {
      messages.push_back({RankMessage::Type::kSetFailed, {}, std::move(failure)});
    }
    if (stop_ && !std::exchange(goodbye_sent_, true)) messages.push_back({RankMessage::Type::kGoodbye, {}, farewell_});
    if (has_drained() && !std::exchange(drained_sent_, true)) {
      messages.push_back({RankMessage::Type::kDrained, {}, {}});
    }
    if (stop_ && has_rounds_ && !is_working()) rounds_->leave();
  }
  if (marks_cycle) parts_.timeline->mark_cycle();
  const bool is_last = std::any_of(messages.begin(), messages.end(), [](const RankMessage& message) {
    return message.type == RankMessage::Type::kGoodbye || message.type == RankMessage::Type::kDrained;
  });
  send_records(is_last);
  for (const RankMessage& message : messages) parts_.control->send(message);
}

/// What this rank has recorded, to the one that writes the file. `is_last`: it may take nothing any more, after this.
void Engine::send_records(bool is_last) {
  if (!carries_records_) return;
  Timeline& timeline = parts_.timeline->shared();
  if (is_last) timeline.drain();
  for (TraceShipment::Message& each : timeline.take_messages()) {
    RankMessage message;
    message.type = each.asks_clock ? RankMessage::Type::kClock : RankMessage::Type::kTrace;
    message.asked = each.asked;
    message.trace = std::move(each.records);
    parts_.control->send(message);
  }
}

/// After a goodbye: this rank needs nothing of the others any more.
bool Engine::has_drained() const {
  return phase_ == Phase::kLeaving && !is_working() && (stop_ || !has_rounds_ || operations_.empty());
}

void Engine::apply(const Decision& decision) {
  switch (decision.type) {
    case Decision::Type::kExecute: {
      const MutexLock lock(mutex_);
      message_.push_back(decision);
      if (InFlight::Entry* entry = operations_.find(decision.name)) operations_.set_running(*entry);
      return;
    }
    case Decision::Type::kReject:
      return reject(decision);
    case Decision::Type::kLeaving:
      leave(Phase::kLeaving, decision.status);
      return poll_.wake();  // the drained message may be due at once
    case Decision::Type::kAbort:
      return failed(decision.status);
    case Decision::Type::kClock:
      return parts_.timeline->shared().clock_answered(decision.first_extents.at(0), decision.first_extents.at(1));
    case Decision::Type::kReleased: {
      {
        const MutexLock lock(mutex_);
        is_released_ = true;
        if (has_rounds_ && !operations_.empty()) return;  // they end with the rounds
      }
      return leave(Phase::kEnded, Status(Errc::kAborted, "the job is over"));
    }
  }
}

/// Everything ends, now.
void Engine::abort(const Status& why) {
  parts_.backend->abort(why);  // first: nobody reads a buffer any more that is given back
  leave(Phase::kEnded, why);
}

/// The members' verdict. In a process set, the whole job may know a better cause.
void Engine::failed(const Status& why) {
  constexpr auto kLongest = 2 * Coordinator::kVerdictGrace;
  std::function<bool(const Status&)> tell;
  {
    const MutexLock lock(mutex_);
    failure_ = why;
    tell = std::exchange(tell_failure_, nullptr);
  }
  if (!tell || !tell(why)) {
    const Status cause = take_end();  // the job may have ended already
    return abort(cause.ok() ? why : cause);
  }
  parts_.backend->abort(why);
  cause_due_ = Clock::now() + kLongest;
}

/// What end() has said, or should have said by now; once.
Status Engine::take_end() {
  const MutexLock lock(mutex_);
  if (!ended_outside_.ok()) cause_due_.reset();
  if (!cause_due_ || Clock::now() < *cause_due_) return std::exchange(ended_outside_, {});
  cause_due_.reset();
  return failure_;
}

/// What a message has ordered is to be run.
void Engine::hand_over_message() {
  if (message_.empty()) return;
  const MutexLock lock(mutex_);
  ordered_.push_back(std::exchange(message_, {}));
  work_changed_.notify_one();
}

/// Ends what the backend does not work on; what it does work on ends in on_done(). With rounds, what is in flight when a rank
/// leaves may still be completed, unless that rank is needed.
void Engine::leave(Phase phase, const Status& status) {
  std::vector<InFlight::Entry> waiting;
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kRunning) end_ = status;  // the first cause is the one to tell
    if (phase_ == Phase::kLeaving && status.code() != Errc::kAborted) end_ = status;  // a loss explains more
    phase_ = phase;
    phase_changed_.notify_all();
    if (phase == Phase::kLeaving && has_rounds_ && !rounds_broken_) return;
    waiting = operations_.take_waiting();
  }
  for (InFlight::Entry& entry : waiting) finish(std::move(entry), status);
}

}  // namespace runjob::runtime
