#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "launcher/supervision/job_outcome.hpp"

/// A job's end as text for people and as JSON for programs. Pure.
namespace runjob {

/// Returns the last lines of a rank's standard error.
using StderrLines = std::function<std::vector<std::string>(int rank)>;

/// One line on what happened, then the last lines of the failed rank's standard error, then what else failed. "" when
/// all is well or the user ended the job.
std::string outcome_message(const JobOutcome& outcome, const StderrLines& stderr_lines);

/// One line with the processes on `host` that runjob waits for before it kills them. `interrupted`: the user has
/// pressed Ctrl-C.
std::string remaining_message(const Remaining& remaining, const std::string& host, bool interrupted);

/// What the status file has about the job itself.
struct JobFacts {
  std::string id;                                    ///< the ranks' RUNJOB_JOB_ID
  std::vector<std::string> command = {};             ///< program and arguments
  std::chrono::system_clock::time_point start = {};  ///< of runjob
  std::chrono::system_clock::time_point end = {};    ///< of the last rank
};

/// The status file, see docs/exit-status.md.
std::string outcome_json(const JobOutcome& outcome, const JobFacts& job, const StderrLines& stderr_lines);

}  // namespace runjob
