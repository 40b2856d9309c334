#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "hostfile/allocation.hpp"

namespace runjob {

/// The nodes and tasks that SLURM has given to the job of this process.
struct SlurmAllocation {
  std::string job_id;
  int nodes = 0;            ///< how many there are
  std::vector<Host> hosts;  ///< with as many slots as SLURM planned tasks for; nodes without any are left out
};

/// Reads SLURM_JOB_ID, SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE; nullopt outside of a job. In a step (as in `srun
/// --pty bash`) the number of tasks is the step's, so there the CPUs of each node count, divided by
/// SLURM_CPUS_PER_TASK. Pure.
/// Errors   Error(kHostfile) naming the variable when they cannot be understood or contradict each other.
std::optional<SlurmAllocation> read_slurm_allocation(const Environment& environment);

/// True if `environment` is that of a step that a user has started, not of a batch script or of the shell of salloc.
bool is_in_slurm_step(const Environment& environment);

}  // namespace runjob
