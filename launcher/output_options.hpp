#pragma once

#include <cstdint>

#include "launcher/job_spec.hpp"
#include "launcher/output_relay.hpp"

namespace runjob {

/// What a job's options and environment (NO_COLOR, TERM) mean for its output. Pure. `window`: see OutputRelay::Options.
/// Source  https://no-color.org
OutputRelay::Options output_options(const JobSpec& spec, std::int64_t window);

}  // namespace runjob
