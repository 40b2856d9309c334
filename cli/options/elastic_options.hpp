#pragma once

#include <vector>

#include "cli/options/option_table.hpp"

namespace runjob {

/// The options of elastic jobs, in the order of --help. read_elastic_settings.cc reads them.
std::vector<Option> elastic_options();

}  // namespace runjob
