#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// The content of a hostfile, and the user to whom the file belongs. He chooses the job's hosts.
struct Hostfile {
  std::vector<Host> hosts;
  ::uid_t owner = 0;
};

/// Reads and parses `path`. `name`: the file as messages name it.
/// Threads  any.
/// Errors   those of parse_hostfile(), and Error(kUsage) naming the file for one that cannot be read, or that others
///          than its owner may write to, with the reason and the remedy.
Hostfile read_hostfile(const std::string& path, const std::string& name);

}  // namespace runjob
