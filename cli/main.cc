#include "cli/command.hpp"
#include "launcher/job/run_job.hpp"

/// runjob: jobs on this host. SSH and its cryptography would double the start time of a short job. They are therefore
/// in a program of their own, which this one becomes for jobs with other hosts, for elastic ones, which may get some,
/// and as one rank of a SLURM job.
int main(int argc, char** argv) {
  using namespace runjob;
  const auto only_this_host = [](const JobSpec& spec) {
    return !spec.slurm_task && !spec.elastic && spec.local_hosts.size() == spec.allocation.hosts.size();
  };
  const auto run = [](const JobSpec& spec) { return run_job(spec, {}); };
  const auto nothing_to_clean = [](const JobSpec&) { return 0; };
  return run_command(argc, argv, {only_this_host, "runjob-remote", run, nothing_to_clean});
}
