#pragma once

#include <cstdint>
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

/// The notice to a user of a job in which no rank called init(), and who gave `options`, which only act in ranks that
/// do; "" if there are none.
std::string idle_options_notice(const std::vector<std::string>& options);

/// The notice about `bytes` of the launcher's standard input that were taken for rank 0, which read none of them.
std::string lost_input_notice(std::int64_t bytes);

}  // namespace runjob
