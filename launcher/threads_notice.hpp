#pragma once

#include <string>
#include <vector>

namespace runjob {

/// A host's cores, and the ranks that share them.
struct HostThreads {
  int cores = 1;
  int local_size = 1;
};

/// What to tell a user who has not set OMP_NUM_THREADS: that we have, since without it every rank of a host would start a
/// thread on each of its cores. "" when no host has several ranks.
std::string threads_notice(const std::vector<HostThreads>& hosts);

}  // namespace runjob
