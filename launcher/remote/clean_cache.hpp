#pragma once

#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// Removes from the job's other hosts what jobs of any version have left there: the agents in the user's cache directory.
/// In a SLURM allocation there is nothing to remove, and it says so.
/// Returns  0, or 125 when a host could not be cleaned.
/// Errors   prints them, one line for each such host.
int clean_cache(const JobSpec& spec);

}  // namespace runjob
