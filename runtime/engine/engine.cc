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

}  // namespace

Engine::Engine(EngineParts parts)
    : parts_(std::move(parts)),
      size_(static_cast<int>(parts_.hosts.size())),
      self_(rank_text(parts_.rank, parts_.hosts)),
      stalls_(parts_.stall_limits, parts_.hosts),
      next_inspection_(stalls_.next(Clock::now())) {
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
    if (parts_.timeline) observer_ = std::make_unique<TimelineObserver>(*parts_.timeline);
    if (has_rounds_) exchange_.emplace(*rounds_, parts_.rank, parts_.hosts, parts_.cache_capacity, observer_.get());
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
  if (signature.kind == Kind::kAlltoall && signature.splits.empty())
    signature.splits = even_splits(submission.name, signature.shape, size_);
  check_operation(submission.name, signature, size_);
}

/// Errors  Error, why the operation is refused.
void Engine::check_in_flight(const Submission& submission) const {
  if (phase_ != Phase::kRunning || stop_) end_.throw_if_failed();
  const bool is_at_once = name_at_once_ != nullptr && *name_at_once_ == submission.name;
  if (!is_at_once && !operations_.contains(submission.name)) return;
  throw Error(Errc::kInvalidArgument, fmt::format("{} '{}': an operation of this name is still in flight on {}",
                                                  to_string(submission.signature.kind), submission.name, self_));
}

std::shared_ptr<Completion> Engine::insert(Submission submission, bool is_said) {
  if (phase_ == Phase::kEnded) {
    auto completion = std::make_shared<Completion>();
    completion->finish(end_);
    return completion;
  }
  if (!is_said) submitted_.push_back({submission.name, submission.signature});
  return operations_.insert(std::move(submission));
}

/// Sees to it that somebody says to the others what was submitted.
void Engine::announce() {
  if (!has_rounds_) {
    if (submitted_.size() == 1) poll_.wake();
  } else if (awaits_round_) {
    rounds_->nudge();
  } else if (!driving_) {
    work_changed_.notify_one();
  }
}

std::shared_ptr<Completion> Engine::submit(Submission submission) {
  check(submission);
  const MutexLock lock(mutex_);
  check_in_flight(submission);
  auto completion = insert(std::move(submission), /*is_said=*/false);
  announce();
  return completion;
}

std::shared_ptr<Completion> Engine::run(Submission submission, Deadline deadline, Status& status) {
  check(submission);
  std::shared_ptr<Completion> completion;
  bool drives = false, at_once = false;
  {
    const MutexLock lock(mutex_);
    check_in_flight(submission);
    drives = become_driver();
    at_once = drives && operations_.empty() && submitted_.empty() && !parts_.timeline;
    if (at_once) {
      name_at_once_ = &submission.name;
    } else {
      completion = insert(std::move(submission), /*is_said=*/false);
      if (!drives) announce();
    }
  }
  if (at_once) {
    Completion::Result result;
    const std::optional<Status> outcome = run_at_once(submission, deadline, result);
    const MutexLock lock(mutex_);
    name_at_once_ = nullptr;
    if (outcome) {
      stop_driving();
      status = *outcome;
      if (result.shape.empty()) return nullptr;
      completion = std::make_shared<Completion>();
      completion->finish(status, std::move(result));
      return completion;
    }
    completion = insert(std::move(submission), /*is_said=*/exchange_->is_in_round());
  }
  if (drives) drive_until(*completion, deadline);
  status = wait(*completion, deadline).value_or(Status());
  return completion;
}

std::optional<Status> Engine::wait(const Completion& completion, Deadline deadline) {
  if (!completion.done()) {
    bool drives = false;
    {
      const MutexLock lock(mutex_);
      drives = become_driver();
    }
    if (drives) drive_until(completion, deadline);
  }
  if (!deadline) return completion.wait(std::nullopt);
  return completion.wait(
      std::max(std::chrono::duration<double>(0), std::chrono::duration<double>(*deadline - Clock::now())));
}

void Engine::shutdown() {
  const MutexLock one_at_a_time(shutdown_mutex_);
  if (!watcher_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    if (end_.ok()) end_ = Status(Errc::kAborted, self_ + " called shutdown()");
    poll_.wake();
  }
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
  parts_.control.reset();
  parts_.timeline.reset();
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
    poll_.wait(descriptors, {parts_.control->deadline(), stop_deadline_, due});
    send_local_events();
    parts_.control->on_events(descriptors, Clock::now());
    for (const Decision& decision : parts_.control->take()) apply(decision);
    if (due && Clock::now() >= *due) tell(stalls_.inspect(Clock::now(), negotiation->waiting(), negotiation->last()));
  }
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
      if (phase_ == Phase::kRunning && !submitted_.empty()) {
        messages.push_back({RankMessage::Type::kSubmit, std::exchange(submitted_, {}), {}});
        marks_cycle = true;
      }
      submitted_.clear();
    }
    for (Status& failure : std::exchange(failures_, {})) {
      messages.push_back({RankMessage::Type::kFailed, {}, std::move(failure)});
    }
    if (stop_ && !std::exchange(goodbye_sent_, true)) messages.push_back({RankMessage::Type::kGoodbye, {}, {}});
    if (has_drained() && !std::exchange(drained_sent_, true)) {
      messages.push_back({RankMessage::Type::kDrained, {}, {}});
    }
    if (stop_ && has_rounds_ && !is_working()) rounds_->leave();
  }
  if (marks_cycle && parts_.timeline) parts_.timeline->mark_cycle();
  for (const RankMessage& message : messages) parts_.control->send(message);
}

/// After a goodbye: this rank needs nothing of the others any more.
bool Engine::has_drained() const {
  return phase_ == Phase::kLeaving && !is_working() && (stop_ || !has_rounds_ || operations_.empty());
}

void Engine::apply(const Decision& decision) {
  switch (decision.type) {
    case Decision::Type::kExecute: {
      const MutexLock lock(mutex_);
      ordered_.push_back(decision);
      if (InFlight::Entry* entry = operations_.find(decision.name)) operations_.set_running(*entry);
      return work_changed_.notify_one();
    }
    case Decision::Type::kReject:
      return reject(decision);
    case Decision::Type::kLeaving:
      leave(Phase::kLeaving, decision.status);
      return poll_.wake();  // the drained message may be due at once
    case Decision::Type::kAbort:
      parts_.backend->abort(decision.status);  // first: nobody reads a buffer any more that is given back
      return leave(Phase::kEnded, decision.status);
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
