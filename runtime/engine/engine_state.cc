#include "runtime/engine/engine_state.hpp"

#include <algorithm>
#include <utility>

#include "runtime/life/goodbye.hpp"

namespace runjob::runtime {
namespace {

EngineParts complete(EngineParts parts) {
  if (parts.timeline) return parts;
  auto off = std::make_shared<Timeline>(parts.rank, std::vector<std::string>());
  parts.timeline = std::make_unique<EngineTimeline>(std::move(off), parts.members.process_set());
  return parts;
}

}  // namespace

EngineState::EngineState(EngineParts from)
    : parts(complete(std::move(from))),
      size(static_cast<int>(parts.members.size())),
      self(rank_text(parts.rank, parts.members)),
      work(parts.cycle_time, parts.backends->host().fusion_advice().buffer_bytes) {}

void EngineState::leave_role() {
  work.leave_role();
  if (is_stopping()) changed.notify_all();
  if (has_work() || work.hold) work_changed.notify_one();
}

bool EngineState::owes_device_work() const {
  if (!parts.backends) return false;
  const std::optional<Status> outcome = parts.backends->device_outcome();
  return !outcome || !outcome->ok() || has_dropped_device_operation || work.operations.has_device_operation();
}

Status EngineState::outcome_of(const Submission& submission, const Status& reason) const {
  if (reason.code() != Errc::kAborted) return reason;
  return with_operation(reason, self, operation_text(submission.name, submission.signature));
}

void EngineState::report(LifeReport report) {
  reports.push_back(std::move(report));
  poll.wake();
}

std::vector<Wait> EngineState::waits() const {
  const int set = parts.members.process_set();
  Wait wait;
  wait.process_set = set;
  for (int member = 0; set != 0 && member < size; ++member) wait.ranks.push_back(parts.members.rank(member));
  std::vector<WaitingOperation> operations = work.operations.waiting();
  std::sort(operations.begin(), operations.end(),
            [](const WaitingOperation& a, const WaitingOperation& b) { return a.serial < b.serial; });
  std::vector<Wait> result;
  const auto add = [&](std::string_view name, Kind kind) {
    wait.operation = operation_text(name, kind, set);
    wait.is_join = kind == Kind::kJoin;
    result.push_back(wait);
  };
  for (const WaitingOperation& operation : operations) add(operation.name, operation.kind);
  if (work.at_once) add(work.at_once->name, work.at_once->kind);
  return result;
}

}  // namespace runjob::runtime
