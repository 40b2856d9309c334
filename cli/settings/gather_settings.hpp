#pragma once

#include "base/environment.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/settings.hpp"

namespace runjob {

/// All sources in one: command line, then environment, then the config file that one of them names. Reads that
/// file. Errors  kUsage.
Settings gather_settings(const CommandLine& line, const Environment& environment, Warnings& warnings);

}  // namespace runjob
