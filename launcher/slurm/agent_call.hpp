#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/job_key.hpp"

namespace runjob {

/// What an agent that SLURM starts is told through srun's standard input: where the launcher listens, and the key of the
/// connections to it.
struct AgentCall {
  std::vector<std::string> addresses;  ///< numeric, the likelier ones first; at least one
  int port = 0;
  rendezvous::JobKey key;
};

inline constexpr std::size_t kMaxCallBytes = 4096;

/// One line with its end: `runjob-call 1 PORT KEY ADDRESS ADDRESS...`.
std::string encode(const AgentCall& call);

/// Of such a line, with or without its end. Errors  Error(kProtocol), which does not show `line`.
AgentCall parse_agent_call(std::string_view line);

/// Both sides mean this protocol, or the handshake fails.
inline constexpr std::string_view kCallPrologue = "runjob channel 1";
/// What an agent sends first on its connection, so that others are turned away at once. Then, each with its length in two
/// bytes, big-endian: its message of the handshake, which holds the name of its node, and after that the answer to it.
inline constexpr std::string_view kCallMagic = "runjob-agent-1\n";
inline constexpr std::size_t kMaxNodeNameBytes = 255;

}  // namespace runjob
