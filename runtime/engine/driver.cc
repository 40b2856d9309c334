#include "runtime/engine/driver.hpp"

#include <algorithm>
#include <pthread.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/engine/timeline_observer.hpp"
#include "runtime/operations/run_operation.hpp"

namespace runjob::runtime {
namespace {

/// Of a plan: operations that are submitted in a burst go at once, and those after the last bucket of a step take no
/// longer than the transfer of so many bytes.
constexpr std::size_t kBucketBytes = 4u << 20;
/// The longest wait for the rest of a bucket without a new request, unless the cycle time says otherwise: the
/// operations of a step follow each other.
constexpr std::chrono::milliseconds kBucketPatience{20};

Driver::Deadline earlier(const Driver::Deadline& a, const Driver::Deadline& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

Driver::Driver(EngineState& state, Execution& execution)
    : state_(state),
      execution_(execution),
      stalls_(state.parts.stall_limits, state.parts.members),
      next_inspection_(stalls_.next(Clock::now())) {}

void Driver::start() {
  const EngineParts& parts = state_.parts;
  observer_ = std::make_unique<TimelineObserver>(*parts.timeline, parts.members, parts.backends->host().rounds());
  RoundNegotiation::Settings settings;
  settings.capacity = parts.cache_capacity;
  settings.plans = {kBucketBytes, parts.cycle_time.count() == 0 ? kBucketPatience : parts.cycle_time};
  exchange_.emplace(parts.backends->host().rounds(), parts.rank, parts.members, settings, observer_.get());
  execution_.start(*exchange_);
  {
    const MutexLock lock(state_.mutex);
    state_.rounds = &parts.backends->host().rounds();
    state_.work.open_role();
  }
  thread_ = std::thread([this] { work(); });
}

void Driver::stop() {
  {
    const MutexLock lock(state_.mutex);
    is_stopped_ = true;
    state_.work_changed.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(state_.mutex);
  while (state_.work.has_driver()) state_.changed.wait(state_.mutex);
  state_.rounds = nullptr;
}

/// "runjob-driver": takes the role when there is work and no caller has it, until stop().
void Driver::work() {
  ::pthread_setname_np(::pthread_self(), "runjob-driver");
  for (;;) {
    {
      const MutexLock lock(state_.mutex);
      while (!is_stopped_ && (state_.phase.is_ended() || !state_.has_work() || !state_.work.take_role(state_.phase)))
        sleep_until_work();
      if (is_stopped_) return;
    }
    drive(nullptr, std::nullopt);
    const MutexLock lock(state_.mutex);
    state_.leave_role();
  }
}

void Driver::sleep_until_work() {
  WorkQueue& work = state_.work;
  if (work.has_driver() || !work.awaits_bucket(state_.is_stopping())) return state_.work_changed.wait(state_.mutex);
  if (state_.work_changed.wait_until(state_.mutex, work.hold->due) == std::cv_status::timeout) work.hold.reset();
}

void Driver::begin_waiting() {
  if (state_.parts.cycle_time.count() == 0) return;
  const MutexLock lock(state_.mutex);
  state_.work.window.begin_waiting();
  if (state_.work.role() == DriverRole::kAsleep) state_.rounds->nudge();
}

void Driver::end_waiting() {
  if (state_.parts.cycle_time.count() == 0) return;
  const MutexLock lock(state_.mutex);
  state_.work.window.end_waiting();
}

Statistics Driver::statistics() const {
  Statistics statistics;
  const MutexLock lock(state_.mutex);
  if (state_.rounds == nullptr) return statistics;
  statistics.rounds = exchange_->rounds();
  statistics.rounds_with_data = exchange_->rounds_with_data();
  statistics.planned_rounds = exchange_->planned_rounds();
  const Rounds::Traffic traffic = state_.rounds->traffic();
  statistics.host_messages = traffic.messages;
  statistics.host_bytes = traffic.bytes;
  return statistics;
}

bool Driver::run_at_once(const SubmissionView& submission, Deadline deadline, Status& status,
                         Completion::Result& result) {
  try {
    note_times();
    const auto at_once = exchange_->decide_at_once(submission, earlier(deadline, next_inspection_));
    if (at_once.decision == nullptr) return false;
    run_in_messages(at_once, submission, status, result);
    return true;
  } catch (const Error& error) {
    on_rounds_failed(Status(error));
  } catch (const std::exception& error) {
    on_rounds_failed(Status(Errc::kSystem, error.what()));
  }
  return false;
}

/// An error is this rank's alone: the other ranks have its message.
void Driver::run_in_messages(const RoundExchange::AtOnce& at_once, const SubmissionView& submission, Status& status,
                             Completion::Result& result) {
  PreparedOperation& prepared = *at_once.prepared;
  try {
    lend_buffers(prepared, submission.input, submission.output, submission.output_bytes, result);
    if (!prepared.moves_nothing) exchange_->combine(prepared.call, *at_once.decision);
    exchange_->end_messages();
    if (log::enabled(log::Level::kTrace))
      log::trace("{} {} is done, in one round", to_string(submission.signature.kind), name_text(submission.name));
  } catch (const std::exception& error) {
    const SignatureView& signature = submission.signature;
    status = Status(
        Errc::kSystem,
        fmt::format("{}: {}", operation_text(submission.name, signature.kind, signature.process_set), error.what()));
  }
}

void Driver::drive_until(const Completion& completion, Deadline deadline) {
  begin_waiting();
  drive(&completion, deadline);
  end_waiting();
  const MutexLock lock(state_.mutex);
  state_.leave_role();
}

void Driver::drive_without_waiting() {
  run_rounds([&] { advance(/*has_waiter=*/false, Clock::now()); });
  const MutexLock lock(state_.mutex);
  state_.leave_role();
}

/// Goes on until `until` is done, or without it until there is nothing to do; at most until the deadline.
void Driver::drive(const Completion* until, Deadline deadline) {
  run_rounds([&] {
    while (!(until != nullptr && until->done())) {
      if (advance(until != nullptr, earlier(deadline, next_inspection_))) continue;
      const auto now = Clock::now();
      if (!next_inspection_ || now < *next_inspection_ || (deadline && now >= *deadline)) return;
      inspect_stalls(now);
    }
  });
}

/// A failure in `rounds` ends all rounds.
template <class Rounds>
void Driver::run_rounds(Rounds rounds) {
  if (has_failed_) return;  // the role's last owner may come back with an operation that it has announced
  try {
    rounds();
  } catch (const Error& error) {
    on_rounds_failed(Status(error));
  } catch (const std::exception& error) {  // no memory: the other ranks cannot go on without this one
    on_rounds_failed(Status(Errc::kSystem, error.what()));
  }
}

/// What the driver does before a round.
struct Driver::Next {
  bool begins;     ///< begin the round; otherwise sleep until there is a reason for one
  Deadline wakes;  ///< at most so long
};

/// One round, or a sleep until there is a reason for one. False when there is nothing to do, or the deadline has
/// passed.
bool Driver::advance(bool has_waiter, Deadline deadline) {
  if (!exchange_->is_in_round()) {
    const std::optional<Next> next = prepare_round(has_waiter, deadline);
    if (!next) return false;
    if (!next->begins) {
      state_.parts.backends->host().rounds().wait(next->wakes);
      const MutexLock lock(state_.mutex);
      state_.work.set_asleep(false);
      return !deadline || Clock::now() < *deadline;
    }
    begin_round();
  }
  if (!exchange_->collect(deadline)) return false;
  take_inputs_back();
  execution_.run(exchange_->decide());
  if (!execution_.has_failed()) return true;
  close_rounds();
  return false;
}

/// Nullopt when there is nothing to do.
std::optional<Driver::Next> Driver::prepare_round(bool has_waiter, Deadline deadline) {
  const MutexLock lock(state_.mutex);
  WorkQueue& work = state_.work;
  if (state_.phase.is_ended() || work.role() == DriverRole::kClosed) return std::nullopt;
  // A round that another rank has begun costs the same with all requests of this one.
  const auto closes = work.window.is_used() ? work.window.closes(Clock::now()) : std::nullopt;
  RoundNegotiation& negotiation = exchange_->negotiation();
  if (!closes || state_.is_stopping() || exchange_->has_reason()) negotiation.submit(work.take_requests());
  if (holds_back(has_waiter)) return std::nullopt;
  // Other ranks wait for this one in vain until it has something to announce.
  if (work.operations.empty() && !negotiation.has_announcements()) return std::nullopt;
  const bool has_reason = exchange_->has_reason();
  work.set_asleep(!has_reason);
  Deadline wakes = earlier(deadline, closes);
  if (work.hold) wakes = earlier(wakes, work.hold->due);
  return Next{has_reason, wakes};
}

/// True when all requests of this rank wait for the rest of their bucket, and so does its part in the next round.
/// `has_waiter`: the driver itself waits for one of them, so that there may be no rest before it is done.
bool Driver::holds_back(bool has_waiter) {
  RoundNegotiation& negotiation = exchange_->negotiation();
  WorkQueue& work = state_.work;
  work.hold.reset();
  const auto hold = negotiation.plans().hold(Clock::now);
  if (!hold) return false;
  if (has_waiter || work.is_awaited() || state_.is_stopping() || Clock::now() >= hold->due) {
    if (!negotiation.has_announcements()) negotiation.release();
    return false;
  }
  work.hold = hold;
  return exchange_->holds_all();
}

void Driver::begin_round() {
  note_times();
  if (exchange_->negotiation().has_announcements()) state_.parts.timeline->mark_cycle();
  exchange_->begin_round([this](const std::string& name) {
    const MutexLock lock(state_.mutex);
    InFlight::Entry* const entry = state_.work.operations.find(name);
    // The end of the job has ended it since this thread looked last.
    if (entry == nullptr) throw Error(Errc::kAborted, fmt::format("{} was ended", name_text(name)));
    lend(*entry);
    return entry->submission.input;
  });
}

void Driver::lend(InFlight::Entry& operation) {
  if (has_failed_) return;  // there is no round any more
  operation.is_lent = true;
  lent_.push_back(&operation);
}

/// The round reads no input any more. Ends the operations that could not be ended while they were lent.
void Driver::take_inputs_back() {
  if (lent_.empty()) return;
  Status reason;
  {
    const MutexLock lock(state_.mutex);
    for (InFlight::Entry* const entry : lent_) entry->is_lent = false;
    lent_.clear();
    if (!state_.phase.is_ended()) return;
    reason = state_.phase.reason();
  }
  execution_.enter(PhaseEvent::kEnd, reason);
  state_.poll.wake();  // this rank may have drained
}

/// Rank 0's trace shows when each rank was ready.
void Driver::note_times() {
  const bool are_wanted = state_.parts.timeline->records_ranks();
  if (are_wanted == has_times_) return;
  has_times_ = are_wanted;
  state_.parts.backends->host().rounds().note_times(are_wanted);
}

void Driver::on_rounds_failed(const Status& status) {
  {
    const MutexLock lock(state_.mutex);
    // A rank that has left has sent a goodbye to the coordinator too; every other failure needs a decision.
    const bool is_goodbye =
        status.code() == Errc::kPeerLost || (state_.is_stopping() && status.code() == Errc::kAborted);
    if (state_.phase.is_open() && !is_goodbye) state_.report(LifeReport::Type::kFailed, status);
  }
  close_rounds();
}

/// There are no more rounds. The operations in flight end when the coordinator has decided why.
///
/// A failed operation closes the rounds as well: in shared memory they use the same steps. A rank that still waits for
/// this one in the operation would take the message of another round for data, and go on without an error.
void Driver::close_rounds() {
  has_failed_ = true;
  take_inputs_back();
  Status reason;
  {
    const MutexLock lock(state_.mutex);
    state_.work.close_role();
    if (state_.phase.is_ended()) return;
    if (state_.phase.is_open()) return state_.poll.wake();
    reason = state_.phase.reason();
  }
  execution_.enter(PhaseEvent::kEnd, reason);
  state_.poll.wake();  // this rank may have drained
}

/// Reports the operations that have waited for too long.
void Driver::inspect_stalls(Clock::time_point now) {
  next_inspection_ = stalls_.next(now);
  std::vector<WaitingOperation> waiting;
  {
    const MutexLock lock(state_.mutex);
    waiting = state_.work.operations.waiting();
  }
  for (WaitingOperation& operation : waiting) operation.missing = exchange_->missing(operation.name);
  std::erase_if(waiting, [](const WaitingOperation& operation) { return operation.missing.empty(); });
  StallInspector::Report report = stalls_.inspect(now, waiting, exchange_->negotiation().last());
  for (const std::string& warning : report.warnings) log::warn("{}", warning);
  if (const std::string text = state_.parts.backends->unfinished(); !report.warnings.empty() && !text.empty())
    log::warn("the first operation that is not done on {}", text);
  if (report.failure.ok()) return;
  std::function<void(const Status&, int)> on_stall;
  {
    const MutexLock lock(state_.mutex);
    on_stall = state_.on_stall;
  }
  if (on_stall) return on_stall(report.failure, report.late);
  const MutexLock lock(state_.mutex);
  state_.report({.type = LifeReport::Type::kStalled, .status = std::move(report.failure), .late = report.late});
}

}  // namespace runjob::runtime
