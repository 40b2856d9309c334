#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

/// What runjob says to srun, and what srun says to runjob. Pure functions.
/// Source   Slurm, srun(1).
namespace runjob {

/// One step with one agent on each of `nodes`, which may use all that the job has there. `agent`: path of runjob-agent.
/// `whole_allocation`: these are all nodes of the job, so they need not be named.
std::vector<std::string> srun_command(const std::vector<std::string>& nodes, bool whole_allocation,
                                      const std::string& agent);

/// `own` without what belongs to this host, or to a task (rank_environment.hpp), and without what would change that step: the
/// variables that stand for srun's options, be they of the job or of a step that we are in. The agents get it.
Environment srun_environment(const Environment& own);

/// What a user should know who has asked SLURM for GPUs in a way that does not fit such a step; empty for all others.
/// Source   tried with Slurm 22.05: a step with one task on each node gets one GPU on each, whatever the job has.
std::string gpu_warning(const Environment& own);

/// The nodes whose agent has ended, as srun says it: `srun: error: s[1-2]: tasks 0-1: Exited with exit code 2`. Empty for any
/// other line.
std::vector<std::string> nodes_that_ended(std::string_view line);

/// What srun also says when all is well.
bool is_noise(std::string_view line);

/// The last of these lines as one reason, with what to do about it; `agent` as above. That agents ended is one only when
/// there is no other.
std::string explain_srun(const std::vector<std::string>& lines, const std::string& agent);

}  // namespace runjob
