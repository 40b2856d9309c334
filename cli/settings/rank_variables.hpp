#pragma once

#include <map>
#include <string>

#include "base/environment.hpp"

namespace runjob {

/// Checks the variables that the ranks' runtime reads and that no option gives, so that a wrong value is one error here
/// and not one of each rank. `environment`: the launcher's. `exported`: the values of `-x`, which win. `given`: the
/// variables that options give, without their prefix, which win too.
/// Errors  kUsage naming the variable, its value and the accepted form.
void check_rank_variables(const Environment& environment, const Environment& exported,
                          const std::map<std::string, std::string>& given);

}  // namespace runjob
