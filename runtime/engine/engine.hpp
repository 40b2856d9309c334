#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/engine/engine_state.hpp"
#include "runtime/engine/execution.hpp"
#include "runtime/engine/statistics.hpp"
#include "runtime/engine/watcher.hpp"
#include "runtime/negotiation/submission.hpp"
#include "runtime/operations/handle_table.hpp"

namespace runjob::runtime {

/// One rank's part in one job, from init to shutdown, or in one process set: takes operations from any thread,
/// negotiates them, has the backend run them in the agreed order and finishes their completions.
///
/// Negotiation  in the rounds of the backend: see RoundExchange. The control plane serves the life of the job alone: a
///              rank leaves, fails or is lost.
/// Life         see Phase. Once a rank leaves or the job has ended, submit() refuses with the cause, and every
///              completion ends with it.
/// Threads      submit(), run(), wait() and shutdown() from any thread. Two threads belong to the engine: the Watcher's
///              and the Driver's.
class Engine : public OperationOwner {
 public:
  using Clock = EngineState::Clock;
  using Deadline = Rounds::Deadline;

  explicit Engine(EngineParts parts);
  ~Engine() override;  ///< shuts down
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Connects the backend, once, before anything is submitted; meanwhile the loss of another rank ends it. `addresses`:
  /// those of all ranks, by rank. The status is the cause of the failure as the coordinator knows it, when it does.
  Status connect(const std::vector<std::string>& addresses);

  /// Errors  Error(kInvalidArgument): the operation can never work, or its name is in flight; kAborted, kPeerLost,
  ///         kTimeout...: the job has ended. Everything later arrives through the completion.
  std::shared_ptr<Completion> submit(Submission submission);

  /// How run() has ended.
  struct Outcome {
    std::shared_ptr<Completion> completion = nullptr;  ///< null when the operation needed none
    Status status = {};                                ///< OK while the operation is still in flight
    Completion::Result result = {};                    ///< without a completion: see there
  };
  /// submit() and wait(), but faster. Errors  as submit().
  Outcome run(const SubmissionView& submission, Deadline deadline);
  std::optional<Status> wait(const Completion& completion, Deadline deadline) override;

  /// The counts so far; zeros after shutdown(). Any thread.
  Statistics statistics() const;

  /// The number of unnamed operations that this rank has submitted in a process set. Any thread.
  std::uint64_t unnamed_count(int process_set) const {
    const MutexLock lock(state_.mutex);
    return state_.work.unnamed.count(process_set);
  }

  /// Waits until all operations in flight on this rank have ended, on devices too. The failure of one of them, or of
  /// the job, when there is one; nullopt when some are still in flight at the deadline. It is no failure that another
  /// rank has left once all have ended.
  std::optional<Status> settle(Deadline deadline);

  /// Leaves the job and finishes every completion. Returns within a second, whatever the other ranks do.
  void shutdown();
  /// The first part of that, which waits for nothing. `why`: the reason that in-flight operations end with, here and on
  /// the other ranks; without it, that this rank called shutdown().
  void begin_shutdown(Status why = {});

  /// Reports the failure of a process set: the job ends on all ranks, with that or its cause. False when the job is
  /// about to end anyway.
  bool fail(Status why);
  /// Reports that an operation of a process set has waited too long for rank `late` of the job.
  void stalled(const Status& why, int late);
  /// In a process set: `notify` is called in place of a report when an operation has waited too long for rank `late` of
  /// the job. Only the whole job knows whether that rank waits itself, in another set.
  void on_stall(std::function<void(const Status& why, int late)> notify) {
    const MutexLock lock(state_.mutex);
    state_.on_stall = std::move(notify);
  }
  /// The operations in flight that wait for other ranks, the oldest first.
  std::vector<Wait> waits() const {
    const MutexLock lock(state_.mutex);
    return state_.waits();
  }
  /// `waits` returns those of this rank's process sets, of which the job's engine reports too in what this rank waits.
  /// Called on the watcher's thread.
  void on_asked(std::function<std::vector<Wait>()> waits) { watcher_.on_asked(std::move(waits)); }
  /// Ends a process set of these ranks on all of them, with `why`: its operations that not all ranks have submitted,
  /// and later ones, which submit() refuses. Returns at once. The other sets of the engine go on, unless the ranks
  /// cannot agree on that within Watcher::kGiveUpLimit, because data of the set is under way or a rank does not answer:
  /// then the engine ends, as it does at once for set 0. The first reason counts; does nothing once the engine has
  /// ended.
  void give_up(int process_set, Status why);
  /// Waits until the operations of a process set that are in flight on this rank have ended, or until the deadline.
  void settle_set(int process_set, Deadline deadline);
  /// The process set of an operation in flight, and its name in messages; nullopt when it is not in flight.
  struct Origin {
    int process_set;
    std::string operation;
  };
  std::optional<Origin> origin_of(const Completion& completion) const;
  /// True while operations are accepted.
  bool is_open() const {
    const MutexLock lock(state_.mutex);
    return state_.is_open();
  }
  /// The set that these ranks form: operations of other sets have names of name_in_set().
  int process_set() const { return state_.parts.members.process_set(); }
  /// Fails all operations on this rank with `why`, asynchronously. Other ranks are not notified.
  void end(Status why);
  /// `notify` is called, on any thread, each time that the job has entered a phase: when a rank leaves, when no rank
  /// runs anything any more, and when the job has ended, with the reason. Not for this rank's own shutdown().
  void on_phase(std::function<void(PhaseEvent, const Status&)> notify) {
    const MutexLock lock(state_.mutex);
    state_.on_phase = std::move(notify);
  }
  /// `notify` is called on the watcher's thread while somebody waits to be accepted at a listening socket, now and then
  /// until that has happened, and until this rank shuts down or the job has ended.
  void on_visitors(int listener, std::function<void()> notify) { watcher_.on_visitors(listener, std::move(notify)); }
  /// `notify` is called once, on the watcher's thread or this one, when a failure is about to end the job, or has done
  /// so; end() does not count. When it returns true, the caller is going to call end() with the cause, and the
  /// operations in flight wait for that, but not for ever.
  void on_failure(std::function<bool(const Status&)> notify) { watcher_.on_failure(std::move(notify)); }

 private:
  void check(Submission& submission) const;
  void refuse_given_up(const auto& submission) const REQUIRES(state_.mutex);
  std::shared_ptr<Completion> announce_end_of_set(int process_set);
  void begin_work(Submission& submission) REQUIRES(state_.mutex);
  bool run_at_once(const SubmissionView& submission, Deadline deadline, Outcome& outcome);
  bool take_role_at_once(const SubmissionView& submission) REQUIRES(state_.mutex);
  bool number_at_once(SubmissionView& submission, UnnamedSubmissions::Next& next) REQUIRES(state_.mutex);
  template <class Use>
  bool with_counted_root(const SubmissionView& submission, Use use) const;
  void leave_at_once(const SubmissionView& submission, bool is_done, Outcome& outcome) REQUIRES(state_.mutex);
  std::shared_ptr<Completion> insert(Submission submission) REQUIRES(state_.mutex);
  struct Begun;
  Begun begin(Submission submission, bool waits) REQUIRES(state_.mutex);
  std::shared_ptr<Completion> launch(Begun begun);
  bool may_launch(const Submission& submission) const REQUIRES(state_.mutex);
  [[nodiscard]] bool wake_driver() REQUIRES(state_.mutex);

  EngineState state_;
  Execution execution_;
  Driver driver_;
  Watcher watcher_;
  Mutex shutdown_mutex_;  ///< one shutdown() at a time
  /// A thread of this rank has waited for an operation since the last one was submitted.
  std::atomic<bool> has_seen_end_{false};
};

}  // namespace runjob::runtime
