#pragma once

#include <vector>

#include "cli/options/option_table.hpp"
#include "cli/options/settings.hpp"

namespace runjob {

/// horovodrun's options that have no effect here, and those that negate an option of runjob. Part of option_table().
std::vector<Option> horovodrun_options();

/// True if horovodrun has this option under this name.
bool horovodrun_has(const Option& option);

/// Warns of each option in `settings` that asks for something that runjob does not do, with the reason.
/// Errors  kUsage for one whose absence would be another job: those of elastic ones. kUsage for a value that horovodrun
///         refuses, also where the option does nothing.
void warn_of_horovodrun_options(const Settings& settings, Warnings& warnings);

}  // namespace runjob
