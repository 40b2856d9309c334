#pragma once

#include "launcher/agent/host_facts.hpp"

namespace runjob {

/// Runs an agent and its guard, with frames on descriptors 0 and 1, which it owns, and messages on 2. Returns the exit
/// status, in the agent's process, when nothing of the job is left on this host. The guard's process ends inside of the
/// call.
/// Threads  none may exist yet.
int run_agent(Neighbours neighbours);

/// Does the same for an agent that is called through its standard input and connects back to the launcher; see
/// connect_back.hpp.
int run_called_agent();

}  // namespace runjob
