#pragma once

#include <string>

#include "launcher/job_spec.hpp"

namespace runjob {

/// Where a job's ranks would run, for people: a line for each host, one for each rank that gets something of its own.
std::string job_map(const JobSpec& spec);

/// The same, with what would be run there.
std::string job_plan(const JobSpec& spec);

}  // namespace runjob
