#pragma once

#include <functional>
#include <string>

#include "launcher/job_spec/first_hosts.hpp"
#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// The actions of one of runjob's two programs for a job that the command line describes. `runjob` is small and runs
/// the jobs of this host; `runjob-remote` runs all others.
struct JobActions {
  /// True if this program can run the job. Otherwise the process becomes `other_program` with the same arguments,
  /// before any warning is printed.
  std::function<bool(const JobSpec&)> runs_here;
  std::string other_program;
  std::function<int(const JobSpec&)> run;          ///< returns the exit status
  std::function<int(const JobSpec&)> clean_cache;  ///< likewise
  DiscoverHosts discover = {};  ///< without it the process becomes `other_program` for a job that discovers its hosts
};

/// main() of runjob: reads the environment and the command line, does what it asks for, and returns the exit status.
/// Opens the standard descriptors that are closed.
/// Threads  the main thread.
/// Errors   none is thrown. An error is one line on standard error; its status is 2 for a mistake of the user's, and
///          125 for a failure of runjob's own.
int run_command(int argc, char** argv, const JobActions& actions);

}  // namespace runjob
