#pragma once

#include <string>
#include <vector>

#include "launcher/ssh/files/ssh_config.hpp"

namespace runjob {

/// The files of ssh's configuration: `~/.ssh/config`, then the system's.
struct SshConfigPaths {
  std::string user;                            ///< its Includes are relative to its folder, and may begin with ~/
  std::string home;                            ///< the directory that ~ means
  std::string system = "/etc/ssh/ssh_config";  ///< its Includes begin in its folder
};

/// Reads both files with their Includes. A file that does not exist counts as empty.
/// Errors  as parse_ssh_config(); Error(kUsage) naming a file that exists but cannot be read. As ssh does, also a file
///         of the user's, or included by it, that belongs to another user than this one or root, or to which others may
///         write.
std::vector<std::vector<SshDirective>> read_ssh_config(const SshConfigPaths& paths);

}  // namespace runjob
