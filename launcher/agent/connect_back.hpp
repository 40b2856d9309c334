#pragma once

#include <string>

#include "base/environment.hpp"
#include "launcher/sealed/noise_handshake.hpp"

namespace runjob {

/// For an agent whose standard input is not the channel, as under srun: reads from there where the launcher is
/// (slurm/agent_call.hpp), connects to it, proves to hold the job's key, and makes the connection descriptors 0 and 1. The
/// keys are for what is then sent on it. All within ten seconds.
/// Threads  blocks; none may exist yet.
/// Errors   Error naming the addresses and why none of them worked.
SealKeys connect_back(const Environment& environment);

}  // namespace runjob
