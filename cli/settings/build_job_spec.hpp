#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "cli/options/settings.hpp"
#include "launcher/job_spec/first_hosts.hpp"
#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// The facts about the place where runjob is started.
struct Surroundings {
  Environment environment;
  std::string current_directory;  ///< absolute; "" if it was deleted
  std::string host_name;          ///< result of gethostname()
  bool as_horovodrun = false;     ///< true if started by that name
  DiscoverHosts discover = {};    ///< for --host-discovery-script
  int gpus = 0;                   ///< the number of this host's GPUs that its ranks may use
};

/// Reads and checks every value; relative paths become absolute. The command is left empty: see start_job().
/// Looks at the file system (hostfile, directories), changes nothing. Waits for the hosts of a discovery script. In a
/// step whose ranks SLURM has started, only task 0 keeps its warnings.
/// Errors  kUsage and kHostfile, naming the option, variable or file that gave the value.
JobSpec build_job_spec(const Settings& settings, const Surroundings& surroundings, Warnings& warnings);

}  // namespace runjob
