#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/job_spec/first_hosts.hpp"

namespace runjob {

/// Runs the script until it lists enough slots. Calls `warn` with a line when the wait begins, and when a later run
/// fails. SIGINT, SIGTERM and SIGHUP end this process during the call, and before that the script with its process
/// group.
/// Errors   see DiscoverHosts.
/// Threads  blocks; no thread and no loop is left afterwards.
std::vector<Host> discover_first_hosts(const FirstHosts& wanted, const Environment& environment,
                                       const std::function<void(const std::string&)>& warn);

}  // namespace runjob
