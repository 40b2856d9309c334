#pragma once

#include <string>

#include "base/environment.hpp"
#include "hostfile/allocation.hpp"
#include "launcher/network/host_address.hpp"

/// Which environment a rank gets, as pure functions. docs/environment.md lists the variables.
/// A rank's environment is rank_defaults() and host_environment() of its agent, then forwarded_environment() of the launcher,
/// then rank_variables() and network_variables(), then what -x sets; later ones win.
namespace runjob {

/// The launcher's variables that go to every rank: all but those that belong to a host or a login (HOME, PWD,
/// HOSTNAME, TMPDIR, XDG_*, SSH_*, DISPLAY, ...), and those that an outer launcher gave to us as to one of
/// its ranks (RANK, OMPI_*, PMI*, SLURM_PROCID, ..., and what network_variables() gave).
Environment forwarded_environment(const Environment& launcher);

/// The agent's own variables that its ranks keep: those that belong to a host or a login.
Environment host_environment(const Environment& agent);

/// What describes a job to its ranks.
struct JobVariables {
  std::string job_id;
  int generation = 0;
  std::string master_address;  ///< a numeric address of rank 0's host that all ranks reach
  int master_port = 0;         ///< was free there; 0 = the agent chooses
};

/// RUNJOB_*, HOROVOD_* and torch.distributed's variables for one rank.
Environment rank_variables(const Allocation& allocation, const Placement& placement, const JobVariables& job);

/// The network of a rank's host: RUNJOB_ADDRESS, and what PyTorch (Gloo, TensorPipe) and NCCL read to find it, each in its own
/// words, unless `set` has that; and RUNJOB_NETWORK_VARIABLES, which names those, so that a job within a rank has its own.
Environment network_variables(const HostAddress& host, const Environment& set);

/// How many threads each of a host's ranks computes with when nobody says.
int threads_per_rank(int cores, int local_size);

/// What the agent gives a rank unless the launcher has set it: Python's output unbuffered and its crashes explained, the
/// host's cores shared among its ranks (OMP_NUM_THREADS), and MASTER_PORT, which the launcher leaves open when all ranks
/// are on one host. `free_port` 0 = none was found.
Environment rank_defaults(int cores, int local_size, int free_port);

}  // namespace runjob
