#pragma once

#include <string>

#include "base/environment.hpp"
#include "hostfile/allocation.hpp"
#include "launcher/channel/host_address.hpp"

/// The environment of a rank, as pure functions. docs/environment.md lists the variables. A rank's environment is made
/// of rank_defaults() and host_environment() of its agent, then forwarded_environment() of the launcher, then
/// rank_variables() and network_variables(), then the variables of -x. Later ones win.
namespace runjob {

/// The launcher's variables that are passed to every rank. Four kinds are left out: variables of a host or a login
/// (HOME, PWD, HOSTNAME, TMPDIR, XDG_*, SSH_*, DISPLAY, ...), those that an outer launcher set for this process as one
/// of its ranks (RANK, OMPI_*, PMI*, SLURM_PROCID, ..., and those of network_variables()), those for files that the
/// launcher writes, and, within a job of runjob, those for files of the outer job's ranks (names_files_of_job()).
Environment forwarded_environment(const Environment& launcher);

/// The agent's own variables that its ranks keep: those of a host or a login.
Environment host_environment(const Environment& agent);

/// The description of a job for its ranks.
struct JobVariables {
  std::string job_id;
  int generation = 0;
  int most_generations = 0;    ///< after the first one, as far as an elastic job has such a limit
  std::string master_address;  ///< a numeric address of rank 0's host that all ranks reach
  int master_port = 0;         ///< a port that was free there; 0: the agent chooses
};

/// The variables RUNJOB_* and HOROVOD_* for one rank, and those that torchrun gives, with its values: a host of
/// `allocation` is a group, its index the group's rank, and all ranks have one role.
/// Source  PyTorch, torch/distributed/elastic/agent/server/local_elastic_agent.py.
Environment rank_variables(const Allocation& allocation, const Placement& placement, const JobVariables& job);

/// The variables for the network of a rank's host: RUNJOB_ADDRESS, and those by which PyTorch (Gloo, TensorPipe) and
/// NCCL find it, unless `set` has them. RUNJOB_NETWORK_VARIABLES lists the latter, so that a job within a rank does not
/// inherit them.
Environment network_variables(const HostAddress& host, const Environment& set);

/// The default number of threads with which each of a host's ranks computes.
int threads_per_rank(int cores, int local_size);

/// The variables that the agent gives a rank unless the launcher has set them: Python's output unbuffered and its
/// crashes explained, the host's cores divided among its ranks (OMP_NUM_THREADS), and MASTER_PORT, which the launcher
/// leaves open if all ranks are on one host. `free_port` is 0 if none was found.
Environment rank_defaults(int cores, int local_size, int free_port);

}  // namespace runjob
