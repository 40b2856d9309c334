#pragma once

#include <optional>

#include "cli/command_line.hpp"
#include "launcher/job_spec.hpp"

namespace runjob {

/// What --serve-call names; nullopt when it was not given. `spec`: of the same command line.
/// Errors  kUsage for what are no descriptors, and where srun has started us as one rank: that is no place to start ranks from.
std::optional<CallDescriptors> call_descriptors(const CommandLine& line, const JobSpec& spec);

}  // namespace runjob
