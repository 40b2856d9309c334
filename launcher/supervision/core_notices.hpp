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

/// The notice of --verbose that the agents have set OMP_NUM_THREADS, which the user has not: otherwise every rank of a
/// host would start a thread on each of its cores. "" if no host has several ranks.
std::string threads_notice(const std::vector<HostCores>& hosts);

/// The notice to a user whose ranks share cores only because the agent may not use most of the host's cores, which is
/// often an accident. "" otherwise.
std::string affinity_notice(const HostCores& host);

}  // namespace runjob
