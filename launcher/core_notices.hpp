#pragma once

#include <string>
#include <vector>

namespace runjob {

/// A host's cores, and the ranks that share them.
struct HostCores {
  std::string name;
  int usable = 1;  ///< by the agent's affinity
  int online = 1;
  int local_size = 1;
};

/// What to tell a user who has not set OMP_NUM_THREADS: that we have, since without it every rank of a host would start a
/// thread on each of its cores. "" when no host has several ranks.
std::string threads_notice(const std::vector<HostCores>& hosts);

/// What to tell a user whose ranks share cores only because most of the host's are forbidden to us, which is often an
/// accident. "" else.
std::string affinity_notice(const HostCores& host);

}  // namespace runjob
