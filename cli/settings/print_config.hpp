#pragma once

#include <string>

#include "cli/options/settings.hpp"

namespace runjob {

/// The output of --print-config: every option that a job depends on with its value and, as a comment, its source. The
/// text is itself a TOML config file. Of two options that are opposites, it has the one without "no-".
std::string config_text(const Settings& given);

}  // namespace runjob
