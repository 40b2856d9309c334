#pragma once

#include <string>

#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// A text that shows where a job's ranks would run: a line for each host, and one for each rank with CPUs or GPUs of
/// its own.
std::string job_map(const JobSpec& spec);

/// The same text, followed by the command.
std::string job_plan(const JobSpec& spec);

}  // namespace runjob
