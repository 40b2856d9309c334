#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/backend_set.hpp"
#include "runtime/engine/phase.hpp"
#include "runtime/engine/wakeable_poll.hpp"
#include "runtime/engine/work_queue.hpp"
#include "runtime/life/control_plane.hpp"
#include "runtime/negotiation/members.hpp"
#include "runtime/negotiation/stall_inspector.hpp"
#include "runtime/operations/operation_runner.hpp"
#include "runtime/timeline/engine_timeline.hpp"

namespace runjob::runtime {

/// What an engine runs on. It owns all of it.
struct EngineParts {
  int rank = 0;  ///< among the members
  Members members;
  std::size_t cache_capacity = 1024;  ///< of the response cache
  FusionSettings fusion;
  std::chrono::microseconds cycle_time{0};  ///< how long a submitted operation may wait for more
  StallLimits stall_limits;
  /// Called before a stall ends the job, with the rank in the job that is late, or -1 when ranks wait for each other;
  /// null for nobody to notify.
  std::function<void(int late, const std::string& reason)> on_stall_ends_job;
  /// Called before the job ends, when the network has failed between this rank and rank `rank` of the job; null for
  /// nobody to notify.
  std::function<void(int rank, const std::string& reason)> on_lost_connection;
  std::unique_ptr<EngineTimeline>
      timeline;  ///< outlives the two below, which write to it; null for one that records nothing
  std::unique_ptr<ControlPlane> control;
  std::unique_ptr<BackendSet> backends;
};

/// The state of an engine. Engine, Driver, Execution and Watcher are one object in four files, by the thread that runs
/// them: nearly each of their steps reads the phase, the operations in flight and the role of the driver together, and
/// changes one of them, so that parts with a state and a mutex of their own would take several locks for a step.
///   Engine     adds operations and their requests; sets `farewell`, `on_stall`, `ended_outside` and `given_up`
///   Driver     takes requests, takes and leaves its role, sets `rounds`
///   Execution  takes operations that have ended, moves the phase, sets `has_dropped_device_operation`
///   Watcher    sends `reports`, to which all add, and reads what Engine has set
/// What only one of them uses is its own member, even where `mutex` guards it.
/// Owner    the Engine; it outlives the other parts.
/// Threads  the members that `mutex` does not guard never change, but for the parts that Engine::shutdown() destroys at
///          its end.
struct EngineState {
  using Clock = std::chrono::steady_clock;

  explicit EngineState(EngineParts from);

  /// True once this rank has called shutdown().
  bool is_stopping() const REQUIRES(mutex) { return farewell.has_value(); }
  /// True while operations are accepted.
  bool is_open() const REQUIRES(mutex) { return phase.is_open() && !is_stopping(); }
  /// True while the backend is at work, which a rank that leaves must not cut off.
  bool is_working() const REQUIRES(mutex) {
    return phase.phase() == Phase::kConnecting || work.operations.running() > 0;
  }
  /// True while a device of this rank is at work. Nobody notifies of its end.
  bool has_device_work() const REQUIRES(mutex) { return parts.backends && !parts.backends->device_outcome(); }
  /// True when not all that this rank has submitted on devices is done there without an error: what those of other
  /// ranks do with it may never end.
  bool owes_device_work() const REQUIRES(mutex);
  bool has_work() const REQUIRES(mutex) { return work.has_work(phase, is_stopping()); }
  /// The driver is the driver no more: the thread "runjob-driver" takes over when there is work.
  void leave_role() REQUIRES(mutex);
  /// The outcome of an operation that ends because of `reason`.
  Status outcome_of(const Submission& submission, const Status& reason) const;
  /// Has the watcher send a report.
  void report(LifeReport report) REQUIRES(mutex);
  void report(LifeReport::Type type, Status status) REQUIRES(mutex) {
    report({.type = type, .status = std::move(status)});
  }
  /// The operations in flight that wait for other ranks, the oldest first.
  std::vector<Wait> waits() const REQUIRES(mutex);

  EngineParts parts;
  const int size;
  const std::string self;  ///< the name of this rank in messages: "rank 3 on s4"
  WakeablePoll poll;       ///< where the watcher sleeps

  mutable Mutex mutex;
  ConditionVariable changed;       ///< the phase, or the role of the driver while this rank is stopping
  ConditionVariable work_changed;  ///< where the thread "runjob-driver" sleeps
  PhaseRecord phase GUARDED_BY(mutex);
  WorkQueue work GUARDED_BY(mutex);
  Rounds* rounds GUARDED_BY(mutex) = nullptr;         ///< while the backend is connected
  std::vector<LifeReport> reports GUARDED_BY(mutex);  ///< not yet sent
  /// An operation on a device was ended here before all ranks had agreed on it, as far as this rank knows.
  bool has_dropped_device_operation GUARDED_BY(mutex) = false;
  /// The call of shutdown() on this rank.
  struct Farewell {
    Status why;             ///< that the other ranks get; OK for the usual reason
    Clock::time_point due;  ///< when this rank goes, whatever the other ranks do
  };
  std::optional<Farewell> farewell GUARDED_BY(mutex);
  std::function<void(const Status& why, int late)> on_stall GUARDED_BY(mutex);  ///< see Engine::on_stall()
  std::function<void(PhaseEvent, const Status&)> on_phase GUARDED_BY(mutex);    ///< see Engine::on_phase()
  Status ended_outside GUARDED_BY(mutex);                                       ///< the cause of Engine::end()
  /// The process sets that were given up, with the reasons: operations of them are refused.
  std::map<int, Status> given_up GUARDED_BY(mutex);
};

}  // namespace runjob::runtime
