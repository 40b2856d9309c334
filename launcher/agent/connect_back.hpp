#pragma once

#include <string>

#include "base/environment.hpp"
#include "sealed/noise_handshake.hpp"

namespace runjob {

/// For an agent whose standard input is not the channel, as under srun. Reads the launcher's address from standard
/// input (sealed_channel/agent_call.hpp), connects to it, proves that it has the job's key, and makes the connection
/// descriptors 0 and 1. Returns the keys for the connection. Takes ten seconds at most.
/// Threads  blocks; no other thread may exist yet.
/// Errors   Error naming the addresses and the reason of each failure.
SealKeys connect_back(const Environment& environment);

}  // namespace runjob
