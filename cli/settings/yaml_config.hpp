#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/settings/config_entry.hpp"

namespace runjob {

/// The keys of a YAML file such as horovodrun reads, in order. Errors  kUsage naming `path` and the line.
std::vector<ConfigEntry> yaml_entries(const std::string& text, std::string_view path);

}  // namespace runjob
