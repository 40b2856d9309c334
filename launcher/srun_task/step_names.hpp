#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hostfile/slurm_task.hpp"

namespace runjob {

/// The names that SLURM keeps for a step: task 0 publishes a value under a name, and the others look it up. Only the
/// step's tasks can do so. The values pass through slurmd, and with PMI through srun, in clear text.
/// Threads  one at a time.
class StepNames {
 public:
  StepNames() = default;
  virtual ~StepNames() = default;
  StepNames(const StepNames&) = delete;
  StepNames& operator=(const StepNames&) = delete;

  /// `name` and `value` have letters, digits and '-'. Task 0 calls it. False if SLURM has not taken them.
  virtual bool publish(std::string_view name, std::string_view value) = 0;
  /// Nullopt if task 0 has not published the name yet, or if SLURM does not answer.
  virtual std::optional<std::string> look_up(std::string_view name) = 0;
};

/// The names of srun --mpi=pmi2 or --mpi=pmix; null if the step has neither, or if SLURM has reserved ports for it,
/// which every task knows.
std::unique_ptr<StepNames> open_step_names(const SlurmTask& task);

}  // namespace runjob
