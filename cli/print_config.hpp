#pragma once

#include <string>

#include "cli/settings.hpp"

namespace runjob {

/// What --print-config prints: every option that a job depends on with its value and, as a comment, where it
/// came from. The text is itself a TOML config file.
std::string config_text(const Settings& settings);

}  // namespace runjob
