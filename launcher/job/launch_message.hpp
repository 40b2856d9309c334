#pragma once

#include "launcher/channel/host_address.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/elastic/membership.hpp"
#include "launcher/job_spec/job_spec.hpp"
#include "launcher/processes/rank_environment.hpp"

namespace runjob {

/// Makes the launch message for the agent of `host`: its ranks, with the environment of each. Pure. `address` is the
/// one of that host. The caller fills in the topology. `output_window`: see Launch.
Launch launch_message(const JobSpec& spec, int host, const JobVariables& job, const HostAddress& address,
                      std::int64_t output_window);

/// The same for one new process of an elastic job on `host`, with the topology. The place is the one that it is meant
/// to get.
Launch launch_message(const JobSpec& spec, const Host& host, const Membership::Start& start, const JobVariables& job,
                      const HostAddress& address, std::int64_t output_window);

}  // namespace runjob
