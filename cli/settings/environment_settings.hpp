#pragma once

#include "base/environment.hpp"
#include "cli/options/settings.hpp"

namespace runjob {

/// The options that `environment` gives through RUNJOB_* and Horovod's variables. Of several variables of one option,
/// RUNJOB_* wins. Values are not parsed here. Pure.
///
/// Unset    Empty values count as unset. So do HOROVOD_START_TIMEOUT=0 and HOROVOD_TIMELINE=DYNAMIC, which mean that to
///          Horovod, and timeline variables that a rank got from its own job.
/// Errors   none. An unknown RUNJOB_* variable is a warning that names the nearest known one; the variables of ranks
///          and of the runtime are known.
Settings environment_settings(const Environment& environment, Warnings& warnings);

}  // namespace runjob
