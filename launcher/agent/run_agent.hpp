#pragma once

#include "launcher/agent/host_facts.hpp"

namespace runjob {

/// All that an agent is, guard included: frames on descriptors 0 and 1, which it owns, messages on 2.
/// Returns its exit status in the agent's process, when nothing of the job is left on this host; the guard's process
/// ends inside.
/// Threads  none may exist yet.
int run_agent(Neighbours neighbours);

/// The same for an agent that is called through its standard input and connects back to the launcher; see connect_back.hpp.
int run_called_agent();

}  // namespace runjob
