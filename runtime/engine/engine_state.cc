#include "runtime/engine/engine_state.hpp"

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
      work(parts.cycle_time, parts.backend->fusion_advice().buffer_bytes) {}

void EngineState::leave_role() {
  work.leave_role();
  if (is_stopping()) changed.notify_all();
  if (has_work() || work.hold) work_changed.notify_one();
}

bool EngineState::owes_device_work() const {
  if (!parts.backend) return false;
  const std::optional<Status> outcome = parts.backend->device_outcome();
  return !outcome || !outcome->ok() || has_dropped_device_operation || work.operations.has_device_operation();
}

Status EngineState::outcome_of(const Submission& submission, const Status& reason) const {
  if (reason.code() != Errc::kAborted) return reason;
  return with_operation(reason, self, operation_text(submission.name, submission.signature));
}

void EngineState::report(LifeReport::Type type, Status status) {
  reports.push_back({.type = type, .status = std::move(status)});
  poll.wake();
}

}  // namespace runjob::runtime
