#pragma once

#include <string>

namespace runjob {

/// What --help prints, made from the option table; at most 100 columns.
std::string help_text();

}  // namespace runjob
