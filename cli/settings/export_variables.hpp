#pragma once

#include "base/environment.hpp"
#include "cli/options/settings.hpp"

namespace runjob {

/// The variables that `-x NAME=VALUE` and `-x NAME` set for every rank; a later one wins. NAME alone takes the value
/// from `environment`; if it has none, that is a warning, as with mpirun.
/// Errors  kUsage for an invalid name, and for a variable that defines a rank's position in the job.
Environment export_variables(const Setting& setting, const Environment& environment, Warnings& warnings);

}  // namespace runjob
