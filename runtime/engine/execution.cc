#include "runtime/engine/execution.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/operations/run_operation.hpp"

namespace runjob::runtime {
namespace {

/// The name of the barrier at the end of a process set, with the set's number after it.
constexpr char kEndOfSet[] = "<end of a process set>";

/// "rank 1 on b", "rank 1 on b, rank 2 on b and 9 more"; empty for none.
std::string ranks_text(const std::vector<int>& ranks, const Members& members) {
  constexpr std::size_t kMostNamed = 8;  // a line that can still be read
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", rank_text(ranks[i], members));
  if (ranks.size() > kMostNamed) text += fmt::format(" and {} more", ranks.size() - kMostNamed);
  return text;
}

}  // namespace

void Execution::start(RoundExchange& exchange) {
  exchange_ = &exchange;
  const EngineParts& parts = state_.parts;
  runner_.emplace(DataPath{[&backends = *parts.backends](const Call& call) {
                             return backends.run({&call, 1});
                           },
                           [&backends = *parts.backends](MemoryKind kind) { return backends.buffers(kind); },
                           [&backends = *parts.backends](std::span<const Call> calls) { return backends.run(calls); }},
                  *parts.timeline, parts.rank, state_.size, parts.fusion, parts.backends->host().fusion_advice());
}

void Execution::run(RoundExchange::Outcome& outcome) {
  std::vector<Decision>& decisions = outcome.decisions;
  const auto is_rejected = [](const Decision& each) { return each.type == Decision::Type::kReject; };
  for (const Decision& decision : decisions) {
    if (is_rejected(decision)) reject(decision);
  }
  std::erase_if(decisions, is_rejected);
  if (!decisions.empty())
    log::debug("the ranks agreed on {} operation{}, the first one is {}; their data {}", decisions.size(),
               decisions.size() == 1 ? "" : "s", name_text(decisions.front().name),
               outcome.is_in_messages ? "came with the round" : "goes through the backend");
  begin(decisions);
  if (outcome.is_in_messages) return run_in_messages();
  refuse_impossible();
  runner_->run(operations_, [this](std::span<AgreedOperation* const> done) { on_done(done); });
  if (!has_failed_) end_sets(decisions);
}

/// These operations need nothing but the round in which they were agreed on.
void Execution::run_in_messages() {
  const EngineParts& parts = state_.parts;
  std::vector<AgreedOperation*> done;
  for (AgreedOperation& operation : operations_) {
    parts.timeline->begin(operation.decision->name, operation.submission->signature.kind);
    operation.status = run_operation({combining(*operation.decision)}, *parts.timeline, *operation.submission,
                                     *operation.decision, parts.rank, state_.size, *operation.result);
    done.push_back(&operation);
  }
  exchange_->end_messages();
  if (!done.empty()) on_done(done);
}

RunCall Execution::combining(const Decision& decision) {
  return [this, &decision](const Call& call) {
    exchange_->combine(call, decision);
    return Status();
  };
}

/// The operations that are in flight here: when the job has ended, they need not be.
void Execution::begin(std::vector<Decision>& decisions) {
  operations_.clear();
  operations_.reserve(decisions.size());
  const MutexLock lock(state_.mutex);
  for (Decision& decision : decisions) {
    InFlight::Entry* entry = find_entry(decision);
    if (entry == nullptr) continue;
    state_.work.operations.set_running(*entry);
    if (entry->submission.work) entry->submission.work->note_agreed();
    operations_.push_back({&decision, &entry->submission, &entry->result});
  }
}

/// Ends the operations on devices that no rank can run. The job goes on.
void Execution::refuse_impossible() {
  std::erase_if(operations_, [this](AgreedOperation& operation) {
    const Signature& signature = operation.submission->signature;
    if (signature.memory == MemoryKind::kHost) return false;
    Status why;
    DeviceBackend* const device = state_.parts.backends->device(why);
    operation.decision->status = refusal_of(device, operation.decision->name, signature);
    if (operation.decision->status.ok()) return false;
    reject(*operation.decision);
    return true;
  });
}

/// A rank that has joined takes part in the allreduces of the others through an entry like any other. Nothing begins
/// after the end: shutdown() has aborted the backend if it was at work then, and nobody would end what begins later.
InFlight::Entry* Execution::find_entry(const Decision& decision) {
  if (state_.phase.is_ended()) return nullptr;
  InFlight& in_flight = state_.work.operations;
  InFlight::Entry* entry = in_flight.find(decision.name);
  if (entry != nullptr) return entry;
  if (decision.for_joined) {
    in_flight.insert({decision.name, *decision.for_joined});
    return in_flight.find(decision.name);
  }
  state_.report(
      LifeReport::Type::kFailed,
      Status(Errc::kBug, fmt::format("told to run {}, but it was not submitted here", name_text(decision.name))));
  return nullptr;
}

void Execution::reject(const Decision& decision) {
  log::debug("no rank runs {}: {}", name_text(decision.name), decision.status.message());
  state_.parts.timeline->reject(decision.name);
  InFlight::Taken taken;
  {
    const MutexLock lock(state_.mutex);
    taken = take(decision.name);
  }
  if (taken) finish(taken.mapped(), decision.status);
}

Submission Execution::end_of_set(int process_set) {
  Submission barrier;
  barrier.name = name_in_set(kEndOfSet, process_set);
  barrier.signature.kind = Kind::kBarrier;
  barrier.signature.process_set = process_set;
  return barrier;
}

/// After the other operations of the round: those of the set were agreed on before its end.
void Execution::end_sets(const std::vector<Decision>& decisions) {
  for (const Decision& decision : decisions) {
    if (!decision.name.starts_with(kEndOfSet)) continue;
    std::vector<int> sets;
    {
      const MutexLock lock(state_.mutex);
      for (const auto& [set, why] : state_.given_up) sets.push_back(set);
    }
    for (const int set : sets) {
      if (decision.name == name_in_set(kEndOfSet, set)) end_set(set);
    }
  }
}

/// All ranks do this between the same two rounds. Each operation that ends names the ranks that have not submitted it.
void Execution::end_set(int process_set) {
  std::vector<InFlight::Taken> waiting;
  Status why;
  {
    const MutexLock lock(state_.mutex);
    why = state_.given_up.at(process_set);
    waiting = state_.work.operations.take_waiting_of(process_set);
    for (const InFlight::Taken& each : waiting) record_end(each.mapped().submission);
  }
  std::vector<std::string> missing;
  for (const InFlight::Taken& each : waiting)
    missing.push_back(ranks_text(exchange_->negotiation().missing(each.key()), state_.parts.members));
  exchange_->negotiation().end_set(process_set);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const Submission& submission = waiting[i].mapped().submission;
    finish(waiting[i].mapped(),
           missing[i].empty()
               ? why
               : Status(why.code(), fmt::format("{}; {} was not submitted by {}", why.message(),
                                                operation_text(submission.name, submission.signature), missing[i])));
  }
}

/// The end is recorded under the lock: when no operation is in flight any more, the watcher may send the last records
/// of this rank.
InFlight::Taken Execution::take(const std::string& name) {
  InFlight::Taken taken = state_.work.operations.take(name);
  if (taken) record_end(taken.mapped().submission);
  return taken;
}

void Execution::record_end(const Submission& submission) {
  state_.parts.timeline->end(submission.name, submission.signature.dtype, submission.signature.shape);
}

/// A failed operation stays in flight until the coordinator has decided why, unless that is known already.
void Execution::on_done(std::span<AgreedOperation* const> operations) {
  std::vector<std::pair<InFlight::Taken, Status>> finished;
  finished.reserve(operations.size());
  {
    const MutexLock lock(state_.mutex);
    InFlight& in_flight = state_.work.operations;
    if (!state_.is_open()) state_.poll.wake();
    const bool is_explained = !state_.phase.is_open();
    const Status* failure = nullptr;
    for (AgreedOperation* operation : operations) {
      has_failed_ |= !operation->status.ok();
      if (!operation->status.ok() && !is_explained) {
        in_flight.set_done(*in_flight.find(operation->decision->name));
        failure = &operation->status;
        continue;
      }
      state_.parts.timeline->end_activity(operation->decision->name);
      // Taken at once: between two locks, the end of the job could take it.
      finished.emplace_back(take(operation->decision->name), operation->status.ok() ? Status() : state_.phase.reason());
    }
    if (failure != nullptr) state_.report(LifeReport::Type::kFailed, *failure);
  }
  // From the last to the first: a thread that waits for one after the other is woken when all of them are finished.
  for (auto each = finished.rbegin(); each != finished.rend(); ++each)
    finish(each->first.mapped(), std::move(each->second));
}

bool Execution::enter(PhaseEvent event, const Status& reason) {
  std::vector<InFlight::Taken> waiting;
  Status cause;
  std::function<void(PhaseEvent, const Status&)> notify;
  {
    const MutexLock lock(state_.mutex);
    if (!state_.phase.enter(event, reason)) return false;
    cause = state_.phase.reason();  // the first one, unless this one explains more
    state_.changed.notify_all();
    notify = state_.on_phase;
    const bool has_rounds = state_.work.role() != DriverRole::kClosed;
    // before the end, the rounds end the operations that need a rank which has left
    if (event == PhaseEvent::kEnd || !has_rounds) waiting = state_.work.operations.take_waiting();
    for (const InFlight::Taken& each : waiting) record_end(each.mapped().submission);
    state_.has_dropped_device_operation |=
        std::any_of(waiting.begin(), waiting.end(), [](const auto& each) { return each.mapped().is_on_device(); });
  }
  if (notify) notify(event, cause);
  for (InFlight::Taken& each : waiting) finish(each.mapped(), cause);
  return true;
}

void Execution::end(std::vector<InFlight::Taken> left, const Status& reason) {
  for (InFlight::Taken& each : left) {
    record_end(each.mapped().submission);
    finish(each.mapped(), reason);
  }
}

/// Finishes an operation that is not in flight any more, and whose end is recorded.
void Execution::finish(InFlight::Entry& operation, Status status) {
  const Submission& submission = operation.submission;
  const Signature& signature = submission.signature;
  if (log::enabled(log::Level::kTrace))
    log::trace("{} is done: {}", operation_text(submission.name, signature), status.ok() ? "ok" : status.message());
  if (!status.ok()) {
    status = state_.outcome_of(submission, status);
    operation.result = {};
  }
  std::shared_ptr<DeviceWork> work = std::move(operation.submission.work);
  if (!status.ok() || (work && !work->is_launched())) work.reset();
  const std::shared_ptr<Completion> completion = std::move(operation.completion);
  completion->finish(std::move(status), std::move(operation.result), std::move(work));
}

}  // namespace runjob::runtime
