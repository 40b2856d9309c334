#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/settings/config_entry.hpp"

namespace runjob {

enum class TomlDialect { kToml, kIni };

/// The keys of a TOML or INI file, in order, by CLI11's own reader of the two.
/// Errors  kUsage naming `path`; also for a '#' inside quotes, which not every version of that reader keeps.
std::vector<ConfigEntry> toml_entries(const std::string& text, TomlDialect dialect, std::string_view path);

}  // namespace runjob
