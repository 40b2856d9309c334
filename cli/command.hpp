#pragma once

#include <functional>
#include <string>

#include "launcher/job_spec.hpp"

namespace runjob {

/// What a program does with a job that the command line describes.
struct JobActions {
  /// Whether it can: otherwise the process becomes `other_program`, another one of ours.
  std::function<bool(const JobSpec&)> runs_here;
  std::string other_program;
  std::function<int(const JobSpec&)> run;          ///< returns the exit status
  std::function<int(const JobSpec&)> clean_cache;  ///< likewise
};

/// main() of runjob: reads the command line, does what it asks for, prints errors. Returns the exit status.
int run_command(int argc, char** argv, const JobActions& actions);

}  // namespace runjob
