#pragma once

#include <optional>

#include "base/status.hpp"

namespace runjob::runtime {

/// Where the life of a job stands, as one rank sees it.
enum class Phase {
  kConnecting,  ///< the backend of this rank is being connected
  kRunning,     ///< operations are accepted
  kLeaving,     ///< some rank has called shutdown(); operations that need no rank which has left may still be completed
  kReleased,    ///< no rank runs anything any more, or the coordinator waits no longer
  kEnded,       ///< nothing can be completed any more
};

/// What moves a job from one phase to another.
enum class PhaseEvent {
  kConnected,  ///< Backend::connect() of this rank has returned
  kLeaving,    ///< decided by the coordinator
  kReleased,   ///< decided by the coordinator
  kEnd,        ///< a failure, a lost rank, or the end of shutdown() on this rank
};

/// The phase after an event: phases only move forward. Nullopt when the event has to wait: a rank that is connecting
/// learns only afterwards that another one leaves, which waits for it. Pure.
std::optional<Phase> next_phase(Phase phase, PhaseEvent event);

/// The phase of a rank's job and the reason for it.
/// Threads  one at a time.
class PhaseRecord {
 public:
  Phase phase() const { return phase_; }
  /// True before the first rank has left or the job has failed.
  bool is_open() const { return phase_ <= Phase::kRunning; }
  bool is_ended() const { return phase_ == Phase::kEnded; }

  /// Why it is not open, or not going to be; OK while it is open.
  const Status& reason() const { return reason_; }
  /// The reason that operations get until the coordinator decides on one. The first one counts.
  void expect(Status reason);

  /// False when the event has to wait. `reason`: the first one counts, except that the loss of a rank explains more
  /// than that a rank has left.
  bool enter(PhaseEvent event, const Status& reason);

 private:
  Phase phase_ = Phase::kConnecting;
  Status reason_;
};

}  // namespace runjob::runtime
