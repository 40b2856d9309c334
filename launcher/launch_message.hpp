#pragma once

#include "launcher/job_spec.hpp"
#include "launcher/messages.hpp"
#include "launcher/network/host_address.hpp"
#include "launcher/rank_environment.hpp"

namespace runjob {

/// What the agent of `host` is told to start: its ranks, with the environment of each. Pure. `address`: of that host; the
/// topology is left to the caller. `output_window`: see Launch.
Launch launch_message(const JobSpec& spec, int host, const JobVariables& job, const HostAddress& address,
                      std::int64_t output_window);

}  // namespace runjob
