#pragma once

#include <string>
#include <vector>

#include "launcher/ssh/ssh_config.hpp"

namespace runjob {

/// Where ssh's configuration is: `~/.ssh/config`, then the system's.
struct SshConfigPaths {
  std::string user;                            ///< its Includes begin in its folder, and may begin with ~/
  std::string home;                            ///< what ~ is
  std::string system = "/etc/ssh/ssh_config";  ///< its Includes begin in its folder
};

/// Reads both files with what they include. One that is not there is empty.
/// Errors  as parse_ssh_config(); a file that is there but cannot be read is Error(kUsage) naming it.
std::vector<std::vector<SshDirective>> read_ssh_config(const SshConfigPaths& paths);

}  // namespace runjob
