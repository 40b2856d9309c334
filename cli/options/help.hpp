#pragma once

#include <string>

namespace runjob {

/// The output of --help, whole lines of at most 100 columns. An option's part is made from its row in the option table,
/// so that a new row needs nothing here. Pure.
std::string help_text();

}  // namespace runjob
