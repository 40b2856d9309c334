#pragma once

#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// Removes the agents that jobs of any version have left in the user's cache directory on the job's other hosts. In a
/// SLURM allocation there is nothing to remove, and it prints so.
/// Returns  0, or 125 when a host could not be cleaned.
/// Errors   prints them, one line for each such host.
int clean_cache(const JobSpec& spec);

}  // namespace runjob
