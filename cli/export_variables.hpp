#pragma once

#include "base/environment.hpp"
#include "cli/settings.hpp"

namespace runjob {

/// What `-x NAME=VALUE` and `-x NAME` set for every rank; a later one wins. NAME alone takes the value from
/// `environment`; when it has none, that is a warning, as with mpirun. Errors  kUsage for what is no name, and
/// for a variable that gives a rank its place in the job.
Environment export_variables(const Setting& setting, const Environment& environment, Warnings& warnings);

}  // namespace runjob
