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

/// Reads and checks every value; relative paths become absolute. run_command_line() sets the command afterwards.
/// Looks at the file system (hostfile, directories) and changes nothing. Blocks while a discovery script is asked for
/// the hosts. Adds to `warnings`. In a step whose ranks SLURM has started, all tasks have the same warnings; they are
/// cleared on every task but task 0.
/// Errors  Error(kUsage) and Error(kHostfile), naming the option, variable or file that gave the value; those of
///         `surroundings.discover`.
JobSpec build_job_spec(const Settings& settings, const Surroundings& surroundings, Warnings& warnings);

}  // namespace runjob
