#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// The text of a file that names a job's hosts, and the user to whom the file belongs.
struct HostText {
  std::string text;
  ::uid_t owner = 0;
};

/// Reads `path`. `what`: its role in messages, "hostfile"; `name`: the file as messages name it.
/// Errors  Error(kUsage) naming the file for one that cannot be read, or that others than its owner may write to, with
///         the reason and the remedy.
HostText read_host_text(const std::string& path, const std::string& what, const std::string& name);

/// The content of a hostfile, and the user to whom the file belongs. He chooses the job's hosts.
struct Hostfile {
  std::vector<Host> hosts;
  ::uid_t owner = 0;
};

/// Reads and parses `path`. `name`: the file as messages name it.
/// Threads  any.
/// Errors   those of parse_hostfile() and of read_host_text().
Hostfile read_hostfile(const std::string& path, const std::string& name);

}  // namespace runjob
