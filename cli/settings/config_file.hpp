#pragma once

#include <string>

#include "cli/options/settings.hpp"

namespace runjob {

/// The options that a config file gives. Keys are the options' long names, '_' as good as '-', or the keys of
/// horovodrun's files. `path` chooses the format: .yaml and .yml, .ini, else TOML.
/// In a YAML file, which horovodrun may read as well, an unknown key and one without a value cause a warning each.
/// Errors  kUsage for an unknown key of another format (naming the nearest), a key given twice, and one value too many.
Settings config_file_settings(const std::string& text, const std::string& path, Warnings& warnings);

}  // namespace runjob
