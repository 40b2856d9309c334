#pragma once

#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/job_spec/ssh_options.hpp"
#include "launcher/ssh/files/local_account.hpp"
#include "launcher/ssh/files/ssh_config.hpp"

namespace runjob {

/// All parameters of a connection to one host.
struct SshTarget {
  enum class NewHostKey { kRefuse, kAccept };

  std::string host;     ///< as the user spells it; every message begins with it
  std::string address;  ///< the name or IP address that is looked up
  int port = 22;
  std::string user;
  /// The host list gives no user and no port, and the user is the one of this process and the port ssh's own: when the
  /// address is one of this host, no connection is needed.
  bool may_be_this_host = false;
  std::vector<std::string> identities;   ///< private key files in the order in which they are tried
  bool identities_are_defaults = false;  ///< true if no configuration named them: ssh-agent's keys come first
  bool identities_only = false;          ///< ssh-agent's other keys are not tried
  std::string agent_socket;              ///< socket of ssh-agent; "" for none
  std::string known_hosts_host;          ///< the host's name in known_hosts
  int known_hosts_port = 22;
  std::vector<std::string> known_hosts;  ///< files; a new key is added to the first one
  std::size_t user_known_hosts = 0;      ///< how many of them are the user's; no key is added if there is none
  NewHostKey new_host_key = NewHostKey::kRefuse;
  bool hash_known_hosts = false;
  /// authentication methods that the configuration allows and only ssh supports
  std::vector<std::string> program_methods;
  /// the reason why only the system's ssh can connect; "" if libssh2 may try
  std::string needs_program;
};

/// Combines the host list, the options, ssh's configuration and ssh's defaults, in this order of precedence.
/// `agent_socket` is SSH_AUTH_SOCK. Pure.
/// Errors  Error(kUsage) from the configuration, see config_of_host().
SshTarget ssh_target(const Host& host, const SshOptions& options, const std::vector<std::vector<SshDirective>>& config,
                     const LocalAccount& account, const std::string& agent_socket);

/// The target's address in messages: "10.0.0.1 port 22".
std::string place_of(const SshTarget& target);

}  // namespace runjob
