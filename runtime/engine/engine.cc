#include "runtime/engine/engine.hpp"

#include <algorithm>
#include <pthread.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/engine/run_operation.hpp"
#include "runtime/engine/timeline_observer.hpp"

namespace runjob::runtime {
namespace {

/// Leaves room within the second that shutdown() may take for ending the backend.
constexpr std::chrono::milliseconds kFarewell{800};

EngineParts complete(EngineParts parts) {
  if (parts.timeline) return parts;
  auto off = std::make_shared<Timeline>(parts.rank, std::vector<std::string>());
  parts.timeline = std::make_unique<EngineTimeline>(std::move(off), parts.members.process_set());
  return parts;
}

}  // namespace

Engine::Engine(EngineParts parts)
    : parts_(complete(std::move(parts))),
      size_(static_cast<int>(parts_.members.size())),
      self_(rank_text(parts_.rank, parts_.members)),
      carries_records_(parts_.rank != 0 && parts_.members.process_set() == 0),
      window_(parts_.cycle_time, parts_.backend->fusion_advice().buffer_bytes),
      stalls_(parts_.stall_limits, parts_.members),
      next_inspection_(stalls_.next(Clock::now())) {
  if (carries_records_) parts_.timeline->shared().on_messages([this] { poll_.wake(); });
  watcher_ = std::thread([this] { watch_job(); });
}

Engine::~Engine() {
  shutdown();
}

Status Engine::connect(const std::vector<std::string>& addresses) {
  constexpr auto kVerdict = 2 * Coordinator::kVerdictGrace;
  Status status = parts_.backend->connect(addresses);
  const MutexLock lock(mutex_);
  is_connecting_ = false;
  if (phase_ != Phase::kRunning) poll_.wake();
  if (status.ok()) {
    rounds_ = parts_.backend->rounds();
    has_rounds_ = rounds_ != nullptr;
    runner_.emplace([this](const Call& call) { return parts_.backend->run(call); }, *parts_.timeline, parts_.rank,
                    size_, parts_.fusion, parts_.backend->fusion_advice(), parts_.backend->symmetric_heap());
    observer_ = std::make_unique<TimelineObserver>(*parts_.timeline, parts_.members);
    if (has_rounds_) exchange_.emplace(*rounds_, parts_.rank, parts_.members, parts_.cache_capacity, observer_.get());
    worker_ = std::thread([this] { work(); });
    return status;
  }
  failures_.push_back(status);
  poll_.wake();
  const auto deadline = Clock::now() + kVerdict;
  while (phase_ == Phase::kRunning) {
    if (phase_changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) return status;
  }
  return end_;
}

void Engine::check(Submission& submission) const {
  Signature& signature = submission.signature;
  if (signature.kind == Kind::kBroadcast && signature.process_set != 0) {
    const std::optional<int> root = parts_.members.index_of(signature.root);
    if (!root) {
      throw Error(Errc::kInvalidArgument, fmt::format("{}: root rank {} is not in process set {}",
                                                      operation_text(submission.name, signature.kind, 0),
                                                      signature.root, signature.process_set));
    }
    signature.root = *root;
  }
  if (signature.kind == Kind::kAlltoall && signature.splits.empty())
    signature.splits = even_splits(submission.name, signature.shape, size_);
  check_operation(submission.name, signature, size_);
}

/// Errors  Error, why the operation is refused.
void Engine::check_in_flight(const Submission& submission) const {
  if (phase_ != Phase::kRunning || stop_) end_.throw_if_failed();
  const bool is_at_once = name_at_once_ && *name_at_once_ == submission.name;
  if (!is_at_once && !operations_.contains(submission.name)) return;
  throw Error(Errc::kInvalidArgument, fmt::format("{}: an operation of this name is still in flight on {}",
                                                  operation_text(submission.name, submission.signature), self_));
}

std::shared_ptr<Completion> Engine::insert(Submission submission, bool is_said) {
  if (phase_ == Phase::kEnded) {
    auto completion = std::make_shared<Completion>();
    completion->finish(end_);
    return completion;
  }
  if (!is_said) {
    submitted_.push_back({submission.name, submission.signature});
    if (window_.is_used()) window_.submitted(submission.signature, Clock::now());
  }
  parts_.timeline->submitted(submission.name, submission.signature.kind);
  return operations_.insert(std::move(submission));
}

/// Sees to it that somebody says to the others what was submitted: the worker, when it returns true. A thread that is woken runs
/// at once, where there are as many ranks as processors: without a lock that it would sleep for.
bool Engine::announce() {
  const bool is_first = submitted_.size() == 1, must_wait = window_.is_used() && window_.closes(Clock::now());
  if (must_wait && !is_first) return false;  // whoever has slept since the first one knows until when
  if (!has_rounds_) {
    if (is_first || window_.is_used()) poll_.wake();
  } else if (awaits_round_) {
    rounds_->nudge();
  }
  return has_rounds_ && !driving_;
}

/// What is to be said now.
std::vector<Request> Engine::take_submitted() {
  if (window_.is_used()) window_.clear();
  return std::exchange(submitted_, {});
}

/// For as long as somebody waits, nothing that was submitted here waits for more.
void Engine::begin_waiting() {
  if (parts_.cycle_time.count() == 0) return;
  const MutexLock lock(mutex_);
  window_.begin_waiting();
  if (!has_rounds_) {
    poll_.wake();
  } else if (awaits_round_) {
    rounds_->nudge();
  }
}

void Engine::end_waiting() {
  if (parts_.cycle_time.count() == 0) return;
  const MutexLock lock(mutex_);
  window_.end_waiting();
}

std::shared_ptr<Completion> Engine::submit(Submission submission) {
  check(submission);
  std::shared_ptr<Completion> completion;
  bool wakes_worker = false;
  {
    const MutexLock lock(mutex_);
    check_in_flight(submission);
    completion = insert(std::move(submission), /*is_said=*/false);
    wakes_worker = announce();
  }
  if (wakes_worker) work_changed_.notify_one();
  return completion;
}

/// Then the calling thread is the driver.
bool Engine::may_run_at_once(const SubmissionView& submission) {
  if (phase_ != Phase::kRunning || stop_ || parts_.timeline->is_on()) return false;
  if (!operations_.empty() || !submitted_.empty() || !become_driver()) return false;
  name_at_once_ = submission.name;
  return true;
}

std::shared_ptr<Completion> Engine::run(const SubmissionView& submission, Deadline deadline, Status& status,
                                        Completion::Result& result) {
  bool at_once = false;
  {
    const MutexLock lock(mutex_);
    at_once = may_run_at_once(submission);
  }
  if (!at_once) return run(to_submission(submission), deadline, status);
  std::optional<Status> outcome = run_at_once(submission, deadline, result);
  std::shared_ptr<Completion> completion;
  {
    const MutexLock lock(mutex_);
    name_at_once_.reset();
    if (outcome || !exchange_->is_in_round()) {
      stop_driving();
    } else {
      Submission said = to_submission(submission);
      check(said);
      completion = insert(std::move(said), /*is_said=*/true);
    }
  }
  if (outcome) {
    status = std::move(*outcome);
    return nullptr;
  }
  if (!completion) return run(to_submission(submission), deadline, status);
  drive_until(*completion, deadline);
  status = wait(*completion, deadline).value_or(Status());
  return completion;
}

std::shared_ptr<Completion> Engine::run(Submission submission, Deadline deadline, Status& status) {
  check(submission);
  std::shared_ptr<Completion> completion;
  bool drives = false, wakes_worker = false;
  {
    const MutexLock lock(mutex_);
    check_in_flight(submission);
    drives = become_driver();
    completion = insert(std::move(submission), /*is_said=*/false);
    if (!drives) wakes_worker = announce();
  }
  if (wakes_worker) work_changed_.notify_one();
  if (drives) drive_until(*completion, deadline);
  status = wait(*completion, deadline).value_or(Status());
  return completion;
}

std::optional<Status> Engine::wait(const Completion& completion, Deadline deadline) {
  if (completion.done()) return completion.wait(std::nullopt);
  begin_waiting();
  {
    bool drives = false;
    {
      const MutexLock lock(mutex_);
      drives = become_driver();
    }
    if (drives) drive_until(completion, deadline);
  }
  std::optional<std::chrono::duration<double>> timeout;
  if (deadline)
    timeout = std::max(std::chrono::duration<double>(0), std::chrono::duration<double>(*deadline - Clock::now()));
  std::optional<Status> outcome = completion.wait(timeout);
  end_waiting();
  return outcome;
}

Statistics Engine::statistics() const {
  const MutexLock lock(mutex_);
  Statistics result;
  if (!parts_.control) return result;
  result.control_messages = parts_.control->messages_sent();
  if (!has_rounds_) return result;
  result.rounds = exchange_->rounds();
  result.rounds_with_data = exchange_->rounds_with_data();
  const Rounds::Traffic traffic = rounds_->traffic();
  result.host_messages = traffic.messages;
  result.host_bytes = traffic.bytes;
  return result;
}

void Engine::shutdown() {
  const MutexLock one_at_a_time(shutdown_mutex_);
  if (!watcher_.joinable()) return;
  begin_shutdown();
  watcher_.join();
  Status end;
  bool cuts_off = false;
  {
    const MutexLock lock(mutex_);
    phase_ = Phase::kEnded;
    end = end_;
    cuts_off = is_working() || !has_rounds_;
    worker_stop_ = true;
    work_changed_.notify_all();
    if (has_rounds_) rounds_->leave();
  }
  if (cuts_off) parts_.backend->abort(end);
  if (worker_.joinable()) worker_.join();
  std::vector<InFlight::Entry> left;
  {
    const MutexLock lock(mutex_);
    while (driving_) driver_gone_.wait(mutex_);
    has_rounds_ = false;
    left = operations_.take_all();
  }
  parts_.backend.reset();
  for (InFlight::Entry& entry : left) finish(std::move(entry), end);
  {
    const MutexLock lock(mutex_);  // statistics() may look at it
    parts_.control.reset();
  }
  if (parts_.members.process_set() == 0) parts_.timeline->shared().close();
}

void Engine::begin_shutdown(Status why) {
  const MutexLock lock(mutex_);
  if (std::exchange(stop_, true)) return;
  if (end_.ok()) end_ = why.ok() ? Status(Errc::kAborted, self_ + " called shutdown()") : why;
  farewell_ = std::move(why);
  poll_.wake();
}

bool Engine::fail(Status why) {
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kRunning || stop_) return false;
  set_failures_.push_back(std::move(why));
  poll_.wake();
  return true;
}

void Engine::end(Status why) {
  const MutexLock lock(mutex_);
  ended_outside_ = std::move(why);
  poll_.wake();
}

void Engine::on_failure(std::function<bool(const Status&)> tell) {
  Status failure;
  {
    const MutexLock lock(mutex_);
    failure = failure_;
    if (failure.ok()) tell_failure_ = std::move(tell);
  }
  if (!failure.ok()) static_cast<void>(tell(failure));
}

// The life of the job.

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
