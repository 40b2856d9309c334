#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/ssh/files/public_key.hpp"

/// Readers that turn the answers of ssh-agent into values (draft-miller-ssh-agent, sections 4.4 and 4.5).
namespace runjob {

/// A key that ssh-agent holds.
struct AgentKey {
  PublicKey key;
  std::string comment;  ///< as the user named it; most often a path
};

/// The flags with which an agent signs as the algorithm named in `data`, an SSH_MSG_USERAUTH_REQUEST after a session
/// identifier (RFC 4252, section 7), wants it: 2 for rsa-sha2-256, 4 for rsa-sha2-512, else 0. Pure.
std::uint32_t agent_flags(std::string_view data);

/// The keys in an agent's answer, and the signature in another; empty when it is not one. Pure; safe on any bytes.
std::vector<AgentKey> parse_agent_keys(std::string_view answer);
std::optional<std::string> parse_agent_signature(std::string_view answer);

}  // namespace runjob
