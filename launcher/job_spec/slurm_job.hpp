#pragma once

#include <string>

namespace runjob {

/// The SLURM job in which runjob was started. A spec has one if its nodes are the job's hosts.
struct SlurmJob {
  std::string id;
  int nodes = 0;  ///< all nodes that SLURM has allocated, also those without a rank
};

}  // namespace runjob
