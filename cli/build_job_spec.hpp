#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "cli/settings.hpp"
#include "launcher/job_spec.hpp"

namespace runjob {

/// What a job takes from where runjob is started.
struct Surroundings {
  Environment environment;
  std::string current_directory;  ///< absolute
  std::string host_name;          ///< as gethostname() says
  bool as_horovodrun = false;     ///< whether we were started by that name
};

/// Reads and checks every value; relative paths become absolute. The command is left empty: see start_job().
/// Looks at the file system (hostfile, directories), changes nothing.
/// Errors  kUsage and kHostfile, naming the option, variable or file that gave the value.
JobSpec build_job_spec(const Settings& settings, const Surroundings& surroundings, Warnings& warnings);

}  // namespace runjob
