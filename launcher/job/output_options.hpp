#pragma once

#include <cstdint>

#include "launcher/job_spec/job_spec.hpp"
#include "launcher/output/output_relay.hpp"

namespace runjob {

/// How many bytes of one stream may be under way from an agent.
inline constexpr std::int64_t kOutputWindow = 1024 * 1024;

/// Derives the options of a job's output from its spec and its environment (NO_COLOR, TERM). Pure.
/// `window`: see OutputRelay::Options.
/// Source  https://no-color.org
OutputRelay::Options output_options(const JobSpec& spec, std::int64_t window);

}  // namespace runjob
