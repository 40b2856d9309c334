#pragma once

#include <string>

namespace runjob {

/// The output of --help, made from the option table; at most 100 columns.
std::string help_text();

}  // namespace runjob
