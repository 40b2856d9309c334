#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/settings/build_job_spec.hpp"

namespace runjob {

/// The side effects of runjob, passed in so that tests can observe them.
struct Effects {
  std::function<void(const std::string&)> print;   ///< to standard output
  std::function<void(const std::string&)> warn;    ///< one line to standard error
  std::function<int(const JobSpec&)> run_job;      ///< returns the exit status
  std::function<int(const JobSpec&)> clean_cache;  ///< likewise
  std::function<void(const std::string&)> tell;    ///< lines to standard error, as they are
};

/// Does what `arguments` (without the program's name) ask for: one of the actions --help, --version,
/// --check-build, --print-config, --clean-cache, --dry-run, in this order, or else a job. Returns the exit status. From
/// --print-config on, all values are checked first, and the warnings are passed to `effects.warn`.
/// Errors  Error(kUsage) and Error(kHostfile) for the user's mistakes, also when there is no command. No job has been
///         started then, and the caller prints the error.
int run_command_line(const std::vector<std::string>& arguments, const Surroundings& surroundings,
                     const Effects& effects);

}  // namespace runjob
