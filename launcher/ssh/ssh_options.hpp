#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace runjob {

/// What the command line, the environment and config files say about SSH, for all hosts of a job.
struct SshOptions {
  std::optional<int> port;                            ///< 1 to 65535; a host's own in the hostfile wins
  std::string identity;                               ///< absolute path of an identity file; "" = the default
  bool accept_new_host_keys = false;                  ///< unknown ones; a changed one never is
  std::optional<std::string> command;                 ///< this program instead of the built-in client: "ssh -v"
  int concurrency = 128;                              ///< handshakes in flight at once, at least 1
  std::chrono::milliseconds connect_timeout{10'000};  ///< for one host, from its name to the ready channel
};

}  // namespace runjob
