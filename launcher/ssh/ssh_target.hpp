#pragma once

#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/ssh/local_account.hpp"
#include "launcher/ssh/ssh_config.hpp"
#include "launcher/ssh/ssh_options.hpp"

namespace runjob {

/// Everything that a connection to one host needs to know.
struct SshTarget {
  enum class NewHostKey { kRefuse, kAccept };

  std::string host;     ///< as the user wrote it; every message begins with it
  std::string address;  ///< what is looked up: a name or an IP address
  int port = 22;
  std::string user;
  std::vector<std::string> identities;   ///< private key files in the order in which they are tried
  bool identities_are_defaults = false;  ///< nobody asked for just these: ssh-agent's keys come first
  bool identities_only = false;          ///< ssh-agent's other keys are not tried
  std::string agent_socket;              ///< of ssh-agent; "" = none
  std::string known_hosts_host;          ///< how known_hosts calls the host
  int known_hosts_port = 22;
  std::vector<std::string> known_hosts;  ///< files; a new key is added to the first one
  std::size_t user_known_hosts = 0;      ///< how many of them are the user's: no key is added when there is none
  NewHostKey new_host_key = NewHostKey::kRefuse;
  bool hash_known_hosts = false;
  std::vector<std::string> program_methods;  ///< of authentication, that the configuration allows and only ssh can do
  std::string needs_program;                 ///< why only the system's ssh will do; "" = libssh2 may try
};

/// Puts together what the host list, the options and ssh's configuration say, in this order of precedence, and ssh's
/// defaults. `agent_socket` is SSH_AUTH_SOCK. Pure.
/// Errors  Error(kUsage) from the configuration, see config_of_host().
SshTarget ssh_target(const Host& host, const SshOptions& options, const std::vector<std::vector<SshDirective>>& config,
                     const LocalAccount& account, const std::string& agent_socket);

/// Where that is, as messages say it: "10.0.0.1 port 22".
std::string place_of(const SshTarget& target);

}  // namespace runjob
