#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/ssh/files/identity_file.hpp"
#include "launcher/ssh/key_agent.hpp"

namespace runjob {

/// One way to show that we are the user: a key of ssh-agent, or one in a file. Exactly one of the two is set.
struct KeyCandidate {
  std::optional<PublicKey> agent_key;
  std::string file;         ///< of the private key
  std::string private_key;  ///< that file's text
  std::string name;         ///< for messages: "ED25519 SHA256:... (ssh-agent)", "/home/me/.ssh/id_ed25519"
};

/// What may be tried, best first, and what may not.
struct KeyChoice {
  std::vector<KeyCandidate> candidates;
  std::vector<std::string> locked;  ///< files whose passphrase nobody has given to ssh-agent
  std::vector<std::string>
      too_open;  ///< what ssh ignores because of its mode: "Permissions 0644 for 'PATH' are too open"
  std::vector<std::string> for_program;  ///< what only the system's ssh can use: RSA, security keys, certificates
};

/// What the choice depends on.
struct KeyRules {
  bool identities_are_defaults = false;  ///< then ssh-agent's keys come before the files
  bool identities_only = false;          ///< then ssh-agent's other keys stay out
  bool rsa_works = false;                ///< libssh2 can make signatures that servers accept
};

/// Orders the keys so that the right one comes early: a server counts the wrong ones (MaxAuthTries, 6). Named files
/// first, by ssh-agent where it holds them, so that an encrypted one works; then ssh-agent's other keys; for default
/// files the other way round. Each key once. Pure.
KeyChoice choose_keys(const std::vector<IdentityFile>& files, const std::vector<AgentKey>& agent_keys,
                      const KeyRules& rules);

}  // namespace runjob
