#pragma once

#include <vector>

#include "cli/option_table.hpp"
#include "cli/settings.hpp"

namespace runjob {

/// horovodrun's options that do nothing here, and those that say the opposite of one of ours. Part of option_table().
std::vector<Option> horovodrun_options();

/// Says of each option in `settings` that does nothing why that is so.
/// Errors  kUsage for one whose absence would be another job: those of elastic ones.
void warn_of_horovodrun_options(const Settings& settings, Warnings& warnings);

}  // namespace runjob
