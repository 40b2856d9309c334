#pragma once

#include <optional>

#include "cli/options/command_line.hpp"
#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// The descriptors of --serve-call; nullopt when it was not given. `spec` belongs to the same command line.
/// Errors  kUsage for invalid descriptors, and if srun has started this process as one rank, which cannot start ranks.
std::optional<CallDescriptors> call_descriptors(const CommandLine& line, const JobSpec& spec);

}  // namespace runjob
