#pragma once

#include <functional>
#include <string>

#include "launcher/job_spec/first_hosts.hpp"
#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// The actions of a program for a job that the command line describes.
struct JobActions {
  /// True if this program can run the job. Otherwise the process becomes `other_program`, another program of runjob.
  std::function<bool(const JobSpec&)> runs_here;
  std::string other_program;
  std::function<int(const JobSpec&)> run;          ///< returns the exit status
  std::function<int(const JobSpec&)> clean_cache;  ///< likewise
  DiscoverHosts discover = {};  ///< without it the process becomes `other_program` for a job that discovers its hosts
};

/// main() of runjob: reads the command line, does what it asks for, prints errors. Returns the exit status.
int run_command(int argc, char** argv, const JobActions& actions);

}  // namespace runjob
