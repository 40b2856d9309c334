#include "runtime/engine/phase.hpp"

#include <algorithm>
#include <utility>

namespace runjob::runtime {

std::optional<Phase> next_phase(Phase phase, PhaseEvent event) {
  switch (event) {
    case PhaseEvent::kConnected:
      return std::max(phase, Phase::kRunning);
    case PhaseEvent::kLeaving:
      if (phase == Phase::kConnecting) return std::nullopt;
      return std::max(phase, Phase::kLeaving);
    case PhaseEvent::kReleased:
      if (phase == Phase::kConnecting) return std::nullopt;
      return std::max(phase, Phase::kReleased);
    case PhaseEvent::kEnd:
      return Phase::kEnded;
  }
  return std::nullopt;
}

void PhaseRecord::expect(Status reason) {
  if (reason_.ok()) reason_ = std::move(reason);
}

bool PhaseRecord::enter(PhaseEvent event, const Status& reason) {
  const std::optional<Phase> next = next_phase(phase_, event);
  if (!next) return false;
  const bool explains_more = !is_ended() && !reason.ok() && reason.code() != Errc::kAborted;
  if (event != PhaseEvent::kConnected && (is_open() || explains_more)) reason_ = reason;
  phase_ = *next;
  return true;
}

}  // namespace runjob::runtime
