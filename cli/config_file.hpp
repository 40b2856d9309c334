#pragma once

#include <string>

#include "cli/settings.hpp"

namespace runjob {

/// The options that a config file gives. Keys are the options' long names, '_' as good as '-', or the keys of
/// horovodrun's files. `path` chooses the format: .yaml and .yml, .ini, else TOML.
/// horovodrun's keys without an effect in this version are warnings.
/// Errors  kUsage for an unknown key (naming the nearest), a key given twice, and one value too many.
Settings config_file_settings(const std::string& text, const std::string& path, Warnings& warnings);

}  // namespace runjob
