#pragma once

#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// Runs the command as one rank of a job whose ranks SLURM has started: `srun -n 16 runjob python train.py`. The rank
/// keeps this process's standard streams, process group, limits and signals; SLURM gives it the latter itself. `spec`
/// has a SLURM task. Returns the rank's exit status, or the job's when another rank's failure has ended this one; does
/// not return when a signal has ended the rank, but ends this process by the same one.
/// Errors   as run_job().
int run_task(const JobSpec& spec);

}  // namespace runjob
