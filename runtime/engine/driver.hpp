#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "runtime/engine/engine_state.hpp"
#include "runtime/engine/execution.hpp"
#include "runtime/engine/statistics.hpp"
#include "runtime/negotiation/round_exchange.hpp"
#include "runtime/negotiation/submission.hpp"

namespace runjob::runtime {

/// Runs the rounds of negotiation, and what they decide. The thread that does so has the role of the driver: one thread
/// at a time, "runjob-driver", or a caller that waits for an operation, so that no other thread has to be woken for it.
/// Failures after a round or an operation has failed here, no round begins: the ranks' steps no longer agree.
/// Owner    the state and the execution are lent.
/// Threads  start() and stop() one at a time; statistics() any; the rest the thread that has the role, unless stated
///          otherwise.
class Driver {
 public:
  using Clock = EngineState::Clock;
  using Deadline = Rounds::Deadline;

  Driver(EngineState& state, Execution& execution);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Once the backend is connected, before the phase is kRunning: rounds can begin.
  void start();
  /// Once the phase is kEnded: ends the thread, and waits for it.
  void stop();

  /// Runs rounds until the completion is done or the deadline has passed, then leaves the role.
  void drive_until(const Completion& completion, Deadline deadline);
  /// Runs one round as far as it goes without waiting for another rank, then leaves the role. For the thread that
  /// submits an operation of which nothing waits once it is agreed on.
  void drive_without_waiting();
  /// True when run_at_once() will announce the operation.
  bool can_run_at_once(const SubmissionView& submission) const { return exchange_->can_decide_at_once(submission); }
  /// The shortest way for the only operation in flight, whose root is counted among the members: one round that also
  /// moves its data. Errors in `status`. False when it must go on like any other operation; it is announced then if
  /// is_in_round().
  bool run_at_once(const SubmissionView& submission, Deadline deadline, Status& status, Completion::Result& result);
  bool is_in_round() const { return exchange_->is_in_round(); }
  /// The round that this rank is in may read the operation's input. Until it does not, the operation is not ended.
  void lend(InFlight::Entry& operation) REQUIRES(state_.mutex);

  /// Any thread: while it waits, no operation that was submitted here waits for more.
  void begin_waiting();
  void end_waiting();

  /// The counts of rounds so far; zeros before start() and after stop(). Any thread.
  Statistics statistics() const;

 private:
  void work();
  void sleep_until_work() REQUIRES(state_.mutex);
  void drive(const Completion* until, Deadline deadline);
  template <class Rounds>
  void run_rounds(Rounds rounds);
  bool advance(bool has_waiter, Deadline deadline);
  struct Next;
  std::optional<Next> prepare_round(bool has_waiter, Deadline deadline);
  bool holds_back(bool has_waiter) REQUIRES(state_.mutex);
  void begin_round();
  void take_inputs_back();
  void note_times();
  void run_in_messages(const RoundExchange::AtOnce& at_once, const SubmissionView& submission, Status& status,
                       Completion::Result& result);
  void on_rounds_failed(const Status& status);
  void close_rounds();
  void inspect_stalls(Clock::time_point now);

  EngineState& state_;
  Execution& execution_;
  std::unique_ptr<NegotiationObserver> observer_;
  std::optional<RoundExchange> exchange_;  ///< from start() on
  std::vector<InFlight::Entry*> lent_;     ///< operations whose inputs the round may read
  bool has_times_ = false;                 ///< the ranks of this host note times for the timeline
  bool has_failed_ = false;                ///< the rounds have, or an operation
  StallInspector stalls_;
  std::optional<Clock::time_point> next_inspection_;
  bool is_stopped_ GUARDED_BY(state_.mutex) = false;
  std::thread thread_;
};

}  // namespace runjob::runtime
