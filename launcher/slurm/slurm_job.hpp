#pragma once

#include <string>

namespace runjob {

/// The SLURM job that runjob is started in, whose nodes are the hosts.
struct SlurmJob {
  std::string id;
  int nodes = 0;  ///< all that SLURM has given to it, also those without a rank
};

}  // namespace runjob
