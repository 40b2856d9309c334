#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "hostfile/slurm_task.hpp"
#include "launcher/srun_task/munge.hpp"
#include "launcher/srun_task/step_names.hpp"

namespace runjob {

/// The work of task 0 of a step beside its rank: gathers the tasks and gives them the job's key, answers the rendezvous
/// over TCP, and ends all ranks when one fails. It listens where the tasks find it (StepGathering) until all tasks have
/// come, then on a free port for clients that hold the key.
/// Threads  one of its own; the members are called from another one.
class StepHead {
 public:
  struct Options {
    SlurmTask task;
    std::string command;  ///< for messages
    std::chrono::milliseconds start_timeout{};
    std::chrono::milliseconds grace_period{};
    bool continue_on_failure = false;
    std::vector<std::string> runtime_options = {};  ///< see JobSpec
  };

  /// Listens when it returns. Errors  Error(kSystem) when none of the ports is free.
  /// `names`: used within this call only; null if the step has none.
  StepHead(Options options, Munge munge, StepNames* names = nullptr);
  /// Ends its work at once, whatever its state.
  ~StepHead();
  StepHead(const StepHead&) = delete;
  StepHead& operator=(const StepHead&) = delete;

  /// Returns the job's exit status (docs/exit-status.md) when every rank has ended or is lost. The reason of a failure
  /// has been printed by then. Blocks. Call it once.
  int wait();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// The scope of the rendezvous' values in which tasks report, each with PUT of one of these keys, and learn the job's
/// end. The bodies are those of messages.hpp; for the last two keys a StepEnd, and a signal's number in decimal.
inline constexpr char kStepScope[] = "runjob-step";
inline constexpr char kStepStarted[] = "started";
inline constexpr char kStepNotStarted[] = "not-started";
inline constexpr char kStepExited[] = "exited";
inline constexpr char kStepEnd[] = "end";
inline constexpr char kStepInterrupted[] = "interrupted";

}  // namespace runjob
