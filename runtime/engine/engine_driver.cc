#include <algorithm>
#include <new>
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
    const Decision* decision = exchange_->decide_at_once(submission, earlier(deadline, next_inspection_));
    if (decision == nullptr) return std::nullopt;
    return run_operation(submission, *decision, /*is_in_messages=*/true, result);
  } catch (const Error& error) {
    rounds_failed(Status(error));
  } catch (const std::exception& error) {
    rounds_failed(Status(Errc::kSystem, error.what()));
  }
  return std::nullopt;
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
    while (!(until != nullptr && until->done())) {
      if (advance(earlier(deadline, next_inspection_))) continue;
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
    if (entry == nullptr && phase_ == Phase::kEnded) return;
    if (entry == nullptr && decision.for_joined) entry = insert_zeros(decision);
    if (entry == nullptr) {
      const char* why = decision.for_joined ? "there is no memory" : "it was not submitted here";
      failures_.emplace_back(Errc::kBug, fmt::format("told to run '{}', but {}", decision.name, why));
      return poll_.wake();
    }
    operations_.set_running(*entry);
  }
  if (parts_.timeline) parts_.timeline->begin(decision.name, entry->submission.signature.kind);
  on_done(decision.name, run_operation(entry->submission, decision, is_in_messages, entry->result));
}

/// This rank has joined, and others allreduce: what it would have submitted. Null without memory.
InFlight::Entry* Engine::insert_zeros(const Decision& decision) {
  const Signature& signature = *decision.for_joined;
  const auto bytes = static_cast<std::size_t>(element_count(signature.shape)) * size_of(signature.dtype);
  std::unique_ptr<std::byte[]> zeros(new (std::nothrow) std::byte[bytes]());
  if (!zeros) return nullptr;
  operations_.insert({decision.name, signature, zeros.get(), zeros.get()});
  InFlight::Entry* entry = operations_.find(decision.name);
  entry->result.bytes = std::move(zeros);
  return entry;
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
