#pragma once

#include <optional>

#include "cli/options/command_line.hpp"
#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// The descriptors of --serve-call, with which Python's runjob.run() starts runjob; nullopt without that option. `spec`
/// belongs to the same command line.
/// Owner   nobody yet: the text is only parsed, and the descriptors are not looked at.
/// Errors  Error(kUsage) for a text that is not two numbers from 3 on, and if srun has started this process as one
///         rank, which cannot start ranks.
std::optional<CallDescriptors> call_descriptors(const CommandLine& line, const JobSpec& spec);

}  // namespace runjob
