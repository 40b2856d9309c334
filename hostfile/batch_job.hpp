#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "hostfile/allocation.hpp"

namespace runjob {

/// The hosts that a batch system has given to the job of this process, where SSH reaches them.
struct BatchJob {
  std::string system;  ///< "PBS", "Grid Engine" or "LSF"
  std::string id;
  std::vector<Host> hosts;
};

/// Looks for a job of PBS (PBS_JOBID and the file PBS_NODEFILE), of a parallel environment of Grid Engine (PE_HOSTFILE,
/// JOB_ID) and of LSF (LSB_JOBID, LSB_MCPU_HOSTS). nullopt outside of such a job, and in one that has only this host's
/// slots to give and no list: a job of Grid Engine without a parallel environment.
/// Errors  Error(kHostfile) for a list that cannot be understood; Error(kUsage) for a job of PBS or LSF without a list,
///         and for a file that cannot be read or that others may write to. All name the variable.
std::optional<BatchJob> read_batch_job(const Environment& environment);

}  // namespace runjob
