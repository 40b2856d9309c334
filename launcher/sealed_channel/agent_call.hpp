#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/job_key.hpp"

namespace runjob {

/// The message that an agent gets through srun's standard input: the launcher's addresses, and the key of the
/// connections to it.
struct AgentCall {
  std::vector<std::string> addresses;  ///< numeric, the likelier ones first; at least one
  int port = 0;
  rendezvous::JobKey key;
};

inline constexpr std::size_t kMaxCallBytes = 4096;

/// The call as one line with its end: `runjob-call 1 PORT KEY ADDRESS ADDRESS...`. It has the job's key: wipe() it.
std::string encode(const AgentCall& call);

/// Parses such a line, with or without its end.
/// Errors  Error(kProtocol), which does not show `line`, because it contains the key.
AgentCall parse_agent_call(std::string_view line);

/// The name of the protocol. The handshake fails unless both sides use the same one.
inline constexpr std::string_view kCallPrologue = "runjob channel 1";
/// The first bytes of an agent on its connection, so that other connections are rejected at once. Then follow, each
/// with its length in two bytes, big-endian: the agent's message of the handshake, which contains the name of its node,
/// and after that the answer to it.
inline constexpr std::string_view kCallMagic = "runjob-agent-1\n";
inline constexpr std::size_t kMaxNodeNameBytes = 255;

}  // namespace runjob
