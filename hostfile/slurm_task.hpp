#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"

namespace runjob {

/// One task of a SLURM step of several, as `srun -n 16 runjob ...` starts them.
struct SlurmTask {
  std::string step;                 ///< "12.0": the job and its step
  int rank = 0;                     ///< of the step's tasks
  int size = 1;                     ///< how many there are, at least 2
  int node = 0;                     ///< index of this task's node among the step's
  std::string node_name;            ///< of this task's node, as SLURM calls it
  std::string first_node;           ///< of task 0's
  std::vector<int> reserved_ports;  ///< ports that SLURM has kept free for the step (srun --resv-ports)
  int pmi_descriptor = -1;          ///< the socket of srun --mpi=pmi2; -1: the step has none
  std::string pmix_namespace = {};  ///< the step's name with srun --mpi=pmix; "": it has none
};

/// Reads SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_NODEID, SLURM_STEP_NODELIST, SLURM_STEP_RESV_PORTS, PMI_FD,
/// PMIX_NAMESPACE and the job's and the step's number; nullopt outside of a step, in a step of one task (as of `srun
/// --pty bash`), and in what a rank of ours has started. Pure.
/// Errors   Error(kHostfile) naming the variable when they cannot be understood.
std::optional<SlurmTask> read_slurm_task(const Environment& environment);

}  // namespace runjob
