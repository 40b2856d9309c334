#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/engine/control_plane.hpp"
#include "runtime/engine/handle_table.hpp"
#include "runtime/engine/in_flight.hpp"
#include "runtime/engine/members.hpp"
#include "runtime/engine/operation_runner.hpp"
#include "runtime/engine/round_exchange.hpp"
#include "runtime/engine/stall_inspector.hpp"
#include "runtime/engine/statistics.hpp"
#include "runtime/engine/submission.hpp"
#include "runtime/engine/submission_window.hpp"
#include "runtime/engine/wakeable_poll.hpp"
#include "runtime/timeline/engine_timeline.hpp"

namespace runjob::runtime {

/// What an engine runs on. It owns all of it.
struct EngineParts {
  int rank = 0;  ///< among the members
  Members members;
  std::size_t cache_capacity = 1024;  ///< of the response cache
  FusionSettings fusion;
  std::chrono::microseconds cycle_time{0};  ///< how long what is submitted may wait for more
  StallLimits stall_limits;
  std::unique_ptr<EngineTimeline> timeline;  ///< outlives the two below, which write to it; null: there will be none
  std::unique_ptr<ControlPlane> control;
  std::unique_ptr<Backend> backend;
};

/// One rank's part in one job, from init to shutdown, or in one process set: takes operations from any thread, negotiates them, has
/// the backend run them in the agreed order and finishes their completions.
///
/// Negotiation  in the backend's rounds, where it has them, which is but for Gloo alone; else over the control plane, which is always there for what
///              concerns the job as a whole: a rank that leaves, fails or is lost.
/// Life         running -> leaving (some rank called shutdown) -> ended, or running -> ended (a rank was lost, a failure);
///              once not running, submit() refuses with the cause, and every completion ends with it.
/// Threads      submit(), run(), wait() and shutdown() from any thread. "runjob-engine" sleeps in poll() until the control plane
///              has something. The work itself, rounds and collectives, is done by one thread at a time, the driver:
///              "runjob-driver", or with rounds a caller that waits, so that nothing has to wake another thread.
class Engine {
 public:
  using Clock = ControlPlane::Clock;
  using Deadline = Rounds::Deadline;

  explicit Engine(EngineParts parts);
  ~Engine();  ///< shuts down
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Connects the backend, once, before anything is submitted; meanwhile the loss of another rank ends it. `addresses`: every rank's, by rank.
  /// The status is the cause of the failure as the coordinator sees it, when it does.
  Status connect(const std::vector<std::string>& addresses);

  /// Errors  Error(kInvalidArgument): the operation can never work, or its name is in flight; kAborted,
  /// kPeerLost,
  ///         kTimeout...: the job has ended. Everything later arrives through the completion.
  std::shared_ptr<Completion> submit(Submission submission);
  /// submit() and wait(), but faster. `status`: OK before. Null when it was done at once: then `result` has what it has left.
  std::shared_ptr<Completion> run(const SubmissionView& submission, Deadline deadline, Status& status,
                                  Completion::Result& result);
  /// submit() and wait(), faster.
  std::shared_ptr<Completion> run(Submission submission, Deadline deadline, Status& status);
  /// The outcome; nullopt when it is not there at the deadline.
  std::optional<Status> wait(const Completion& completion, Deadline deadline);

  /// So far; zeros after shutdown(). Any thread.
  Statistics statistics() const;

  /// Leaves the job and finishes every completion. Returns within a second, whatever the other ranks do.
  void shutdown();
  /// The first part of that, which waits for nothing. `why`: what in-flight operations end with, here and on the other ranks; without it,
  /// that this rank called shutdown().
  void begin_shutdown(Status why = {});

  /// A process set has failed: the job ends on all ranks, with that or its cause. False when it is about to end anyway.
  bool fail(Status why);
  /// Ends everything on this rank, soon, with `why`, as a failure of its own would. The others hear nothing of it.
  void end(Status why);
  /// `tell` is called once, on the engine's thread or this one, when a failure is about to end the job, or has done so; end() does not
  /// count. When it returns true, somebody will call end() with the cause, and operations in flight wait for that, but not for ever.
  void on_failure(std::function<bool(const Status&)> tell);

 private:
  enum class Phase { kRunning, kLeaving, kEnded };

  void check(Submission& submission) const;
  void check_in_flight(const Submission& submission) const REQUIRES(mutex_);
  bool may_run_at_once(const SubmissionView& submission) REQUIRES(mutex_);
  std::shared_ptr<Completion> insert(Submission submission, bool is_said) REQUIRES(mutex_);
  [[nodiscard]] bool announce() REQUIRES(mutex_);
  std::vector<Request> take_submitted() REQUIRES(mutex_);
  void begin_waiting();
  void end_waiting();

  // The life of the job: the engine's thread.
  void watch_job();
  bool may_stop(Clock::time_point now);
  std::optional<Clock::time_point> window_end();
  void send_local_events();
  void send_records(bool is_last);
  bool has_drained() const REQUIRES(mutex_);
  void apply(const Decision& decision);
  Status take_end();
  void abort(const Status& why);
  void failed(const Status& why);
  void hand_over_message();
  void leave(Phase phase, const Status& status);

  // The work: the driver.
  void work();
  bool has_work() const REQUIRES(mutex_);
  bool is_working() const REQUIRES(mutex_);
  bool is_awaited() const REQUIRES(mutex_);
  bool awaits_bucket() const REQUIRES(mutex_);
  void await_work() REQUIRES(mutex_);
  bool become_driver() REQUIRES(mutex_);
  void stop_driving() REQUIRES(mutex_);
  void run_ordered();
  void drive_until(const Completion& completion, Deadline deadline);
  void drive(const Completion* until, Deadline deadline);
  bool advance(bool has_waiter, Deadline deadline);
  bool holds_bucket(bool has_waiter) REQUIRES(mutex_);
  void give();
  void finish_round();
  bool run_at_once(const SubmissionView& submission, Deadline deadline, Status& status, Completion::Result& result);
  bool run_known(const SubmissionView& submission, Deadline deadline, Status& status, Completion::Result& result);
  void run_in_messages(const Decision& decision, PreparedOperation& prepared, const SubmissionView& submission,
                       Status& status, Completion::Result& result);
  RunCall combining(const Decision& decision);
  void rounds_failed(const Status& status);
  void inspect_waiting(Clock::time_point now);
  void tell(StallInspector::Report report);

  void execute(std::vector<Decision> decisions, bool is_in_messages);
  std::vector<AgreedOperation> begin(std::vector<Decision> decisions);
  InFlight::Entry* find_entry(const Decision& decision) REQUIRES(mutex_);
  void on_done(std::span<AgreedOperation* const> operations);
  void reject(const Decision& decision);
  void finish(InFlight::Entry entry, Status status);

  EngineParts parts_;
  const int size_;
  const std::string self_;      ///< how messages name this rank: "rank 3 on s4"
  const bool carries_records_;  ///< of the timeline, to rank 0
  WakeablePoll poll_;
  std::thread watcher_, worker_;
  Mutex shutdown_mutex_;  ///< one shutdown() at a time

  /// Somebody here has waited for an operation since the last one was submitted.
  std::atomic<bool> has_seen_end_{false};

  mutable Mutex mutex_;
  ConditionVariable phase_changed_, work_changed_, driver_gone_;
  Phase phase_ GUARDED_BY(mutex_) = Phase::kRunning;
  Status end_ GUARDED_BY(mutex_);  ///< why it is not running
  InFlight operations_ GUARDED_BY(mutex_);
  bool is_connecting_ GUARDED_BY(mutex_) = true;
  std::vector<Request> submitted_ GUARDED_BY(mutex_);  ///< not yet said to the others
  SubmissionWindow window_ GUARDED_BY(mutex_);         ///< whether submitted_ may wait for more
  std::vector<Status> failures_ GUARDED_BY(mutex_);    ///< of the backend, not yet sent
  Status farewell_ GUARDED_BY(mutex_);                 ///< begin_shutdown()'s
  Status ended_outside_ GUARDED_BY(mutex_);            ///< end()'s
  Status failure_ GUARDED_BY(mutex_);                  ///< what has ended the job
  std::function<bool(const Status&)> tell_failure_ GUARDED_BY(mutex_);
  std::vector<Status> set_failures_ GUARDED_BY(mutex_);  ///< fail()'s, not yet sent
  bool is_released_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;  ///< shutdown() was called
  bool worker_stop_ GUARDED_BY(mutex_) = false;
  bool has_rounds_ GUARDED_BY(mutex_) = false;
  bool driving_ GUARDED_BY(mutex_) = false;                    ///< somebody is the driver
  bool awaits_round_ GUARDED_BY(mutex_) = false;               ///< it sleeps until there is a reason for a round
  std::vector<const Completion*> awaited_ GUARDED_BY(mutex_);  ///< by threads that do not drive
  /// Of what the driver holds back for a bucket of the plan: requests that it lacks, 0 when nothing is; and when it is given up.
  std::size_t bucket_lacks_ GUARDED_BY(mutex_) = 0;
  Clock::time_point bucket_due_ GUARDED_BY(mutex_);
  std::optional<std::string_view> name_at_once_ GUARDED_BY(mutex_);  ///< in flight, but not in operations_
  bool rounds_broken_ GUARDED_BY(mutex_) = false;                    ///< there will be no more of them
  /// By the control plane, message by message: to be run.
  std::deque<std::vector<Decision>> ordered_ GUARDED_BY(mutex_);

  // The driver's own.
  Rounds* rounds_ = nullptr;  ///< set once, by connect()
  std::unique_ptr<NegotiationObserver> observer_;
  std::optional<RoundExchange> exchange_;
  std::size_t held_ = 0;                   ///< requests, when bucket_due_ was set
  std::optional<OperationRunner> runner_;  ///< from connect() on
  StallInspector stalls_;                  ///< without rounds the engine thread's, where the negotiation is held
  std::optional<Clock::time_point> next_inspection_;

  // The engine thread's own.
  std::vector<Decision> message_;  ///< as far as it was applied
  bool goodbye_sent_ = false, drained_sent_ = false;
  std::optional<Clock::time_point> stop_deadline_;
  std::optional<Clock::time_point> cause_due_;  ///< a failure waits until then for its cause
};

}  // namespace runjob::runtime
