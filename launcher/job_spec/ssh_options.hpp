#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace runjob {

/// The settings for SSH from the command line, the environment and config files, for all hosts of a job.
struct SshOptions {
  std::optional<int> port;                            ///< 1 to 65535; a host's own port in the hostfile wins
  std::string identity;                               ///< absolute path of an identity file; "" = the default
  bool accept_new_host_keys = false;                  ///< accepts unknown keys; a changed key is never accepted
  std::optional<std::string> command;                 ///< this program instead of the built-in client: "ssh -v"
  int concurrency = 128;                              ///< number of handshakes at once, at least 1
  std::chrono::milliseconds connect_timeout{10'000};  ///< for one host, from its name to the ready channel
};

}  // namespace runjob
