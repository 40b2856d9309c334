#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/settings/setting_reader.hpp"

namespace runjob {

/// The options that are the runtime's and not the launcher's: values of its variables, by name without their prefix.
/// Errors  Error(kUsage) naming where a value that cannot be was given.
std::map<std::string, std::string> read_runtime_variables(const SettingReader& reader);

/// The options that act only in ranks that call init(), as messages name them: those that the user gave here or in a
/// file of runjob, and not those that Horovod's variables give. A value that is the default asks for nothing.
std::vector<std::string> runtime_options(const Settings& settings);

}  // namespace runjob
