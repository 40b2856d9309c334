#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

/// The command and environment of srun, and the meaning of its output. Pure functions.
/// Source   Slurm, srun(1).
namespace runjob {

/// The command of one step with one agent on each of `nodes`, which may use everything that the job has there. `agent`
/// is the path of runjob-agent. `whole_allocation`: these are all nodes of the job, so that they need not be named.
std::vector<std::string> srun_command(const std::vector<std::string>& nodes, bool whole_allocation,
                                      const std::string& agent);

/// `own` without the variables of this host or of a task (rank_environment.hpp), and without those that would change
/// the step because they stand for srun's options. The agents get this environment.
Environment srun_environment(const Environment& own);

/// A warning for a user who has requested GPUs from SLURM in a way that does not fit such a step; otherwise empty.
/// Source   tried with Slurm 22.05: a step with one task on each node gets one GPU on each, whatever the job has.
std::string gpu_warning(const Environment& own);

/// The nodes whose agent has ended, from srun's line `srun: error: s[1-2]: tasks 0-1: Exited with exit code 2`. Empty
/// for any other line.
std::vector<std::string> nodes_that_ended(std::string_view line);

/// The nodes of such a line, and that of `srun: error: Node failure on s2`.
std::vector<std::string> nodes_named(std::string_view line);

/// True for lines that srun also prints when nothing is wrong.
bool is_noise(std::string_view line);

/// The last of these lines as one reason, with the remedy; `agent` as above. The end of agents is the reason only if
/// there is no other.
std::string explain_srun(const std::vector<std::string>& lines, const std::string& agent);

}  // namespace runjob
