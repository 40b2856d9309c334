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
      self_(rank_text(parts_.rank, parts_.hosts)) {
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
    std::vector<pollfd> descriptors;
    parts_.control->watch(descriptors);
    poll_.wait(descriptors, {parts_.control->deadline(), stop_deadline_});
    send_local_events();
    parts_.control->on_events(descriptors, Clock::now());
    for (const Decision& decision : parts_.control->take()) apply(decision);
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
      leave(Phase::kEnded, decision.status);
      return parts_.backend->abort(decision.status);
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

// The work.

void Engine::work() {
  ::pthread_setname_np(::pthread_self(), "runjob-driver");
  for (;;) {
    {
      const MutexLock lock(mutex_);
      while (!worker_stop_ && (driving_ || !has_work())) work_changed_.wait(mutex_);
      if (worker_stop_) return;
      driving_ = true;
    }
    if (rounds_ != nullptr) {
      drive(nullptr, std::nullopt);
    } else {
      run_ordered();
    }
    const MutexLock lock(mutex_);
    stop_driving();
  }
}

bool Engine::has_work() const {
  return has_rounds_ ? phase_ != Phase::kEnded && !rounds_broken_ && !operations_.empty() : !ordered_.empty();
}

/// Whether the backend is at work, which a rank that leaves must not cut off.
bool Engine::is_working() const {
  return is_connecting_ || operations_.running() > 0;
}

/// Whether the calling thread is the driver from now on. Only rounds can be driven by any thread.
bool Engine::become_driver() {
  if (!has_rounds_ || driving_ || rounds_broken_ || worker_stop_ || phase_ == Phase::kEnded) return false;
  return driving_ = true;
}

void Engine::stop_driving() {
  driving_ = false;
  if (stop_) driver_gone_.notify_all();
  if (has_work()) work_changed_.notify_one();
}

/// Runs what the coordinator has ordered.
void Engine::run_ordered() {
  for (;;) {
    Decision decision;
    {
      const MutexLock lock(mutex_);
      if (ordered_.empty()) return;
      decision = std::move(ordered_.front());
      ordered_.pop_front();
    }
    execute(decision, /*is_in_messages=*/false);
  }
}

/// nullopt: it must go on like any other.
std::optional<Status> Engine::run_at_once(const Submission& submission, Deadline deadline, Completion::Result& result) {
  try {
    const Decision* decision = exchange_->decide_at_once(submission, deadline);
    if (decision == nullptr) return std::nullopt;
    return run_operation(submission, *decision, /*is_in_messages=*/true, result);
  } catch (const Error& error) {
    rounds_failed(Status(error));
    return std::nullopt;
  }
}

Status Engine::run_operation(const Submission& submission, const Decision& decision, bool is_in_messages,
                             Completion::Result& result) {
  const auto run = [&](const Call& call) {
    if (!is_in_messages) return parts_.backend->run(call);
    exchange_->combine(call, decision);
    return Status();
  };
  return runtime::run_operation(run, parts_.timeline.get(), submission, decision, parts_.rank, size_, result);
}

void Engine::drive_until(const Completion& completion, Deadline deadline) {
  drive(&completion, deadline);
  const MutexLock lock(mutex_);
  stop_driving();
}

/// Goes on until `until` is done, or without it until nothing is in flight; at most until the deadline.
void Engine::drive(const Completion* until, Deadline deadline) {
  try {
    while (!(until != nullptr && until->done()) && advance(deadline)) {
    }
  } catch (const Error& error) {
    rounds_failed(Status(error));
  }
}

/// One round, or a sleep until there is a reason for one. False: there is nothing to do, or the deadline has passed.
bool Engine::advance(Deadline deadline) {
  if (!exchange_->is_in_round()) {
    bool has_reason = false;
    {
      const MutexLock lock(mutex_);
      if (phase_ == Phase::kEnded || rounds_broken_) return false;
      exchange_->submit(std::exchange(submitted_, {}));
      has_reason = exchange_->has_reason();
      if (!has_reason && operations_.empty()) return false;
      awaits_round_ = !has_reason;
    }
    if (!has_reason) {
      exchange_->wait(deadline);
      const MutexLock lock(mutex_);
      awaits_round_ = false;
      return !deadline || Clock::now() < *deadline;
    }
    give();
  }
  if (!exchange_->collect(deadline)) return false;
  finish_round();
  return true;
}

/// Says to the others what was submitted here.
void Engine::give() {
  if (parts_.timeline && exchange_->has_something_to_say()) parts_.timeline->mark_cycle();
  exchange_->give([this](const std::string& name) {
    const MutexLock lock(mutex_);
    const InFlight::Entry* entry = operations_.find(name);
    return entry == nullptr ? nullptr : entry->submission.input;
  });
}

void Engine::finish_round() {
  const RoundExchange::Outcome outcome = exchange_->decide();
  for (const Decision& decision : outcome.decisions) {
    if (decision.type == Decision::Type::kExecute) {
      execute(decision, outcome.is_in_messages);
    } else if (decision.type == Decision::Type::kReject) {
      reject(decision);
    } else {
      throw Error(decision.status.code(), decision.status.message());
    }
  }
}

/// No more rounds. What is in flight ends when it is known why.
void Engine::rounds_failed(const Status& status) {
  Status end;
  {
    const MutexLock lock(mutex_);
    rounds_broken_ = true;
    if (phase_ == Phase::kEnded) return;
    if (phase_ == Phase::kRunning) {
      // Who has left has said goodbye to the coordinator too; everything else needs a verdict.
      if (status.code() != Errc::kPeerLost) failures_.push_back(status);
      return poll_.wake();
    }
    end = end_;
  }
  leave(Phase::kEnded, end);
}

void Engine::execute(const Decision& decision, bool is_in_messages) {
  InFlight::Entry* entry = nullptr;
  {
    const MutexLock lock(mutex_);
    entry = operations_.find(decision.name);
    if (entry == nullptr) {
      if (phase_ == Phase::kEnded) return;
      failures_.emplace_back(Errc::kBug, fmt::format("told to run '{}', which was not submitted here", decision.name));
      return poll_.wake();
    }
    operations_.set_running(*entry);
  }
  if (parts_.timeline) parts_.timeline->begin(decision.name, entry->submission.signature.kind);
  on_done(decision.name, run_operation(entry->submission, decision, is_in_messages, entry->result));
}

void Engine::reject(const Decision& decision) {
  if (parts_.timeline) parts_.timeline->reject(decision.name);
  std::optional<InFlight::Entry> entry;
  {
    const MutexLock lock(mutex_);
    entry = operations_.take(decision.name);
  }
  if (!entry) return;
  finish(std::move(*entry), decision.status);
}

void Engine::on_done(const std::string& name, Status status) {
  std::optional<InFlight::Entry> entry;
  {
    const MutexLock lock(mutex_);
    if (phase_ != Phase::kRunning || stop_) poll_.wake();
    operations_.set_done(*operations_.find(name));
    const bool is_explained = phase_ == Phase::kEnded || (phase_ == Phase::kLeaving && has_rounds_);
    if (!status.ok() && !is_explained) {  // stays in flight until the coordinator knows what really happened
      failures_.push_back(std::move(status));
      return poll_.wake();
    }
    if (!status.ok()) status = end_;
    entry = operations_.take(name);  // at once: between two locks, the end of the job could take it
  }
  if (parts_.timeline) parts_.timeline->end_activity(name);
  finish(std::move(*entry), std::move(status));
}

void Engine::finish(InFlight::Entry entry, Status status) {
  const Signature& signature = entry.submission.signature;
  if (parts_.timeline) parts_.timeline->end(entry.submission.name, signature.dtype, signature.shape);
  if (!status.ok()) entry.result = {};
  entry.completion->finish(std::move(status), std::move(entry.result));
}

}  // namespace runjob::runtime
