#pragma once

#include <string>

#include "base/environment.hpp"

namespace runjob {

/// A warning that names, in one line, the variables in `environment` that would change a job of Horovod and do not
/// change one of runjob; "" if there is none. They are Horovod's, and the same ones with runjob's prefix that had an
/// effect once. A variable with Horovod's default value, or with a value that asks for what runjob does anyway, is not
/// named; neither are those that only count when Horovod is built.
/// Source  docs/environment.md gives the reason for each.
std::string ignored_variables_warning(const Environment& environment);

}  // namespace runjob
