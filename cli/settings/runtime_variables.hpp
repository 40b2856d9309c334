#pragma once

#include <map>
#include <string>

#include "cli/settings/setting_reader.hpp"

namespace runjob {

/// The options that are the runtime's and not the launcher's: values of its variables, by name without their prefix.
/// Errors  Error(kUsage) naming where a value that cannot be was given.
std::map<std::string, std::string> read_runtime_variables(const SettingReader& reader);

}  // namespace runjob
