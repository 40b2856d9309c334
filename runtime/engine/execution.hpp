#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/engine_state.hpp"
#include "runtime/negotiation/round_exchange.hpp"
#include "runtime/operations/operation_runner.hpp"

namespace runjob::runtime {

/// Runs the operations that all ranks have agreed on, and finishes the completion of each operation that has ended: by
/// its result, a failure, a rejection, or the end of the job.
/// Owner    the state is lent, and outlives it.
/// Threads  start(), run() and has_failed() are the driver's; the rest any.
/// Errors   none is thrown. A failure is the status of the operation's completion.
class Execution {
 public:
  explicit Execution(EngineState& state) : state_(state) {}

  /// Once the backend is connected. `exchange` is lent: the messages of its rounds may hold operations' data.
  void start(RoundExchange& exchange);

  /// Runs what a round has decided, and rejects what it has rejected, which it removes from the decisions. Failures of
  /// the backend are reported to the coordinator: their operations end with its decision.
  void run(RoundExchange::Outcome& outcome);

  /// True once an operation has failed here: the ranks' steps no longer agree, so that no round may begin.
  bool has_failed() const { return has_failed_; }

  /// Moves the job to another phase, and ends the operations that cannot be completed in it, unless the backend works
  /// on them just now. False when the event has to wait; see next_phase().
  bool enter(PhaseEvent event, const Status& reason);
  /// Ends operations that the caller has taken, after the last round.
  void end(std::vector<InFlight::Taken> left, const Status& reason);
  /// The barrier after which a process set that was given up ends: the operations of the set that all ranks have agreed
  /// on before are done, and the others end, the same on all ranks.
  static Submission end_of_set(int process_set);

 private:
  RunCall combining(const Decision& decision);
  void begin(std::vector<Decision>& decisions);
  InFlight::Entry* find_entry(const Decision& decision) REQUIRES(state_.mutex);
  void run_in_messages();
  void refuse_impossible();
  void on_done(std::span<AgreedOperation* const> operations);
  void reject(const Decision& decision);
  void end_sets(const std::vector<Decision>& decisions);
  void end_set(int process_set);
  InFlight::Taken take(const std::string& name) REQUIRES(state_.mutex);
  void record_end(const Submission& submission);
  void finish(InFlight::Entry& operation, Status status);

  EngineState& state_;
  RoundExchange* exchange_ = nullptr;
  std::optional<OperationRunner> runner_;
  bool has_failed_ = false;
  std::vector<AgreedOperation> operations_;  ///< that run() runs
};

}  // namespace runjob::runtime
