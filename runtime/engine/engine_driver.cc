#include <algorithm>
#include <pthread.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/run_operation.hpp"

/// What the driver does: rounds of negotiation and the operations themselves.
namespace runjob::runtime {
namespace {

Engine::Deadline earlier(const Engine::Deadline& a, const Engine::Deadline& b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

void Engine::work() {
  ::pthread_setname_np(::pthread_self(), "runjob-driver");
  for (;;) {
    {
      const MutexLock lock(mutex_);
      while (!worker_stop_ && (driving_ || !has_work())) await_work();
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
  if (!has_rounds_) return !ordered_.empty();
  return phase_ != Phase::kEnded && !rounds_broken_ && !operations_.empty() && !awaits_bucket();
}

/// Whether there is nothing to do before a bucket is complete, or due.
bool Engine::awaits_bucket() const {
  return submitted_.size() < bucket_lacks_ && !is_awaited() && !stop_;
}

/// Whether somebody waits for what is in flight. Who waits for what is done is only about to notice.
bool Engine::is_awaited() const {
  return std::any_of(awaited_.begin(), awaited_.end(), [](const Completion* each) { return !each->done(); });
}

void Engine::await_work() {
  if (driving_ || !awaits_bucket()) return work_changed_.wait(mutex_);
  if (work_changed_.wait_until(mutex_, bucket_due_) == std::cv_status::timeout) bucket_lacks_ = 0;
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
  if (has_work() || bucket_lacks_ != 0) work_changed_.notify_one();
}

/// Runs what the coordinator has ordered.
void Engine::run_ordered() {
  for (;;) {
    std::vector<Decision> message;
    {
      const MutexLock lock(mutex_);
      if (ordered_.empty()) return;
      message = std::move(ordered_.front());
      ordered_.pop_front();
    }
    execute(std::move(message), /*is_in_messages=*/false);
  }
}

bool Engine::run_at_once(const SubmissionView& submission, Deadline deadline, Status& status,
                         Completion::Result& result) {
  if (submission.signature.kind != Kind::kBroadcast || submission.signature.process_set == 0)
    return run_known(submission, deadline, status, result);
  SubmissionView counted = submission;
  const std::optional<int> root = parts_.members.index_of(submission.signature.root);
  if (!root) return false;
  counted.signature.root = *root;
  return run_known(counted, deadline, status, result);
}

/// False: it must go on like any other, and was said to the others if that has begun a round.
bool Engine::run_known(const SubmissionView& submission, Deadline deadline, Status& status,
                       Completion::Result& result) {
  try {
    const auto [decision, prepared] = exchange_->decide_at_once(submission, earlier(deadline, next_inspection_));
    if (decision == nullptr) return false;
    run_in_messages(*decision, *prepared, submission, status, result);
    return true;
  } catch (const Error& error) {
    rounds_failed(Status(error));
  } catch (const std::exception& error) {
    rounds_failed(Status(Errc::kSystem, error.what()));
  }
  return false;
}

void Engine::run_in_messages(const Decision& decision, PreparedOperation& prepared, const SubmissionView& submission,
                             Status& status, Completion::Result& result) {
  try {
    lend_buffers(prepared, submission.input, submission.output, submission.output_bytes, result);
    if (!prepared.moves_nothing) exchange_->combine(prepared.call, decision);
    exchange_->end_messages();
  } catch (const std::exception& error) {  // the others have what they need
    status =
        Status(Errc::kSystem,
               fmt::format("{}: {}",
                           operation_text(submission.name, submission.signature.kind, submission.signature.process_set),
                           error.what()));
  }
}

/// Runs what needs nothing but the round in which it was agreed on.
RunCall Engine::combining(const Decision& decision) {
  return [this, &decision](const Call& call) {
    exchange_->combine(call, decision);
    return Status();
  };
}

void Engine::drive_until(const Completion& completion, Deadline deadline) {
  begin_waiting();
  drive(&completion, deadline);
  end_waiting();
  const MutexLock lock(mutex_);
  stop_driving();
}

/// Goes on until `until` is done, or without it until nothing is in flight; at most until the deadline.
void Engine::drive(const Completion* until, Deadline deadline) {
  try {
    while (!(until != nullptr && until->done())) {
      if (advance(until != nullptr, earlier(deadline, next_inspection_))) continue;
      const auto now = Clock::now();
      if (!next_inspection_ || now < *next_inspection_ || (deadline && now >= *deadline)) return;
      inspect_waiting(now);
    }
  } catch (const Error& error) {
    rounds_failed(Status(error));
  } catch (const std::exception& error) {  // no memory: the others cannot go on without us
    rounds_failed(Status(Errc::kSystem, error.what()));
  }
}

/// Says so when something has waited for too long.
void Engine::inspect_waiting(Clock::time_point now) {
  next_inspection_ = stalls_.next(now);
  std::vector<WaitingOperation> waiting;
  {
    const MutexLock lock(mutex_);
    waiting = operations_.waiting();
  }
  for (WaitingOperation& operation : waiting) operation.missing = exchange_->missing(operation.name);
  std::erase_if(waiting, [](const WaitingOperation& operation) { return operation.missing.empty(); });
  tell(stalls_.inspect(now, waiting, exchange_->last()));
}

void Engine::tell(StallInspector::Report report) {
  for (const std::string& warning : report.warnings) log::warn("{}", warning);
  if (report.failure.ok()) return;
  const MutexLock lock(mutex_);
  failures_.push_back(std::move(report.failure));
  poll_.wake();
}

/// Whether what was submitted here waits for the rest of its bucket, and so does this rank's part in the next round. `has_waiter`:
/// the driver itself waits for some of it, so that there may be no rest before it is done.
bool Engine::holds_bucket(bool has_waiter) {
  constexpr std::chrono::milliseconds kLongest{20};  // without anything new: a step's operations follow each other
  bucket_lacks_ = 0;
  const std::optional<std::size_t> lacks = exchange_->missing_in_bucket();
  if (!lacks) {
    held_ = 0;
    return false;
  }
  const auto now = Clock::now();
  if (const std::size_t held = exchange_->held(); held != std::exchange(held_, held))
    bucket_due_ = now + (parts_.cycle_time.count() == 0 ? kLongest : parts_.cycle_time);
  if (has_waiter || is_awaited() || stop_ || now >= bucket_due_) {
    if (!exchange_->has_something_to_say()) exchange_->release();
    return false;
  }
  bucket_lacks_ = *lacks;
  return exchange_->holds_all();
}

/// One round, or a sleep until there is a reason for one. False: there is nothing to do, or the deadline has passed.
bool Engine::advance(bool has_waiter, Deadline deadline) {
  if (!exchange_->is_in_round()) {
    bool has_reason = false;
    Deadline wakes;
    {
      const MutexLock lock(mutex_);
      if (phase_ == Phase::kEnded || rounds_broken_) return false;
      // A round that another rank has begun costs the same with all that was submitted here.
      const auto closes = window_.is_used() ? window_.closes(Clock::now()) : std::nullopt;
      if (!closes || stop_ || exchange_->has_reason()) exchange_->submit(take_submitted());
      if (holds_bucket(has_waiter)) return false;
      // Nothing that others wait for can be done before this rank has something to say.
      if (operations_.empty() && !exchange_->has_something_to_say()) return false;
      has_reason = exchange_->has_reason();
      awaits_round_ = !has_reason;
      wakes = earlier(deadline, closes);
      if (bucket_lacks_ != 0) wakes = earlier(wakes, bucket_due_);
    }
    if (!has_reason) {
      exchange_->wait(wakes);
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
  if (exchange_->has_something_to_say()) parts_.timeline->mark_cycle();
  exchange_->give([this](const std::string& name) {
    const MutexLock lock(mutex_);
    const InFlight::Entry* entry = operations_.find(name);
    return entry == nullptr ? nullptr : entry->submission.input;
  });
}

void Engine::finish_round() {
  RoundExchange::Outcome outcome = exchange_->decide();
  for (const Decision& decision : outcome.decisions) {
    if (decision.type == Decision::Type::kExecute) continue;
    if (decision.type != Decision::Type::kReject) throw Error(decision.status.code(), decision.status.message());
    reject(decision);
  }
  std::erase_if(outcome.decisions, [](const Decision& each) { return each.type == Decision::Type::kReject; });
  execute(std::move(outcome.decisions), outcome.is_in_messages);
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

void Engine::execute(std::vector<Decision> decisions, bool is_in_messages) {
  std::vector<AgreedOperation> operations = begin(std::move(decisions));
  if (!is_in_messages)
    return runner_->run(operations, [this](std::span<AgreedOperation* const> done) { on_done(done); });
  std::vector<AgreedOperation*> done;
  for (AgreedOperation& operation : operations) {
    parts_.timeline->begin(operation.decision.name, operation.submission->signature.kind);
    operation.status = run_operation(combining(operation.decision), *parts_.timeline, *operation.submission,
                                     operation.decision, parts_.rank, size_, *operation.result);
    done.push_back(&operation);
  }
  exchange_->end_messages();
  if (!done.empty()) on_done(done);
}

/// Those of the operations that are in flight here: when the job has ended, they need not be.
std::vector<AgreedOperation> Engine::begin(std::vector<Decision> decisions) {
  std::vector<AgreedOperation> operations;
  operations.reserve(decisions.size());
  const MutexLock lock(mutex_);
  for (Decision& decision : decisions) {
    InFlight::Entry* entry = find_entry(decision);
    if (entry == nullptr) continue;
    operations_.set_running(*entry);
    operations.push_back({std::move(decision), &entry->submission, &entry->result});
  }
  return operations;
}

/// A rank that has joined takes part in the others' allreduces through an entry like any other.
InFlight::Entry* Engine::find_entry(const Decision& decision) {
  InFlight::Entry* entry = operations_.find(decision.name);
  if (entry != nullptr || phase_ == Phase::kEnded) return entry;
  if (decision.for_joined) {
    operations_.insert({decision.name, *decision.for_joined});
    return operations_.find(decision.name);
  }
  failures_.emplace_back(Errc::kBug, fmt::format("told to run '{}', but it was not submitted here", decision.name));
  poll_.wake();
  return nullptr;
}

void Engine::reject(const Decision& decision) {
  parts_.timeline->reject(decision.name);
  std::optional<InFlight::Entry> entry;
  {
    const MutexLock lock(mutex_);
    entry = operations_.take(decision.name);
  }
  if (!entry) return;
  finish(std::move(*entry), decision.status);
}

void Engine::on_done(std::span<AgreedOperation* const> operations) {
  std::vector<std::pair<InFlight::Entry, Status>> finished;
  finished.reserve(operations.size());
  {
    const MutexLock lock(mutex_);
    if (phase_ != Phase::kRunning || stop_) poll_.wake();
    const bool is_explained = phase_ == Phase::kEnded || (phase_ == Phase::kLeaving && has_rounds_);
    const Status* failure = nullptr;
    for (AgreedOperation* operation : operations) {
      if (!operation->status.ok() &&
          !is_explained) {  // stays in flight until the coordinator knows what really happened
        operations_.set_done(*operations_.find(operation->decision.name));
        failure = &operation->status;
        continue;
      }
      // At once: between two locks, the end of the job could take it.
      finished.emplace_back(std::move(*operations_.take(operation->decision.name)),
                            operation->status.ok() ? operation->status : end_);
    }
    if (failure != nullptr) {
      failures_.push_back(*failure);
      poll_.wake();
    }
  }
  for (const auto& [entry, status] : finished) parts_.timeline->end_activity(entry.submission.name);
  // From the last to the first: who waits for one after the other is woken when all are there.
  for (auto each = finished.rbegin(); each != finished.rend(); ++each)
    finish(std::move(each->first), std::move(each->second));
}

void Engine::finish(InFlight::Entry entry, Status status) {
  const Signature& signature = entry.submission.signature;
  parts_.timeline->end(entry.submission.name, signature.dtype, signature.shape);
  if (!status.ok()) entry.result = {};
  entry.completion->finish(std::move(status), std::move(entry.result));
}

}  // namespace runjob::runtime
