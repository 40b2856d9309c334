#pragma once

#include "base/environment.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/settings.hpp"

namespace runjob {

/// All sources in one: command line, then environment, then the config file that one of them names. Reads that
/// file. It can name programs that the job starts, so it is read only if nobody else may change it.
/// Errors  kUsage, also for a config file that belongs to another user or that others may write to.
Settings gather_settings(const CommandLine& line, const Environment& environment, Warnings& warnings);

}  // namespace runjob
