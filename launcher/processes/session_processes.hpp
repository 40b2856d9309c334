#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace runjob {

/// One process of a session.
struct SessionProcess {
  pid_t pid = -1;
  pid_t parent = -1;
  std::uint64_t started = 0;   ///< clock ticks since the host started
  std::string name;            ///< at most 15 bytes
  bool handles_abort = false;  ///< true if it catches SIGABRT, as Python's faulthandler does to print the stack
};

/// The processes of the session that `leader` has created, oldest first, without zombies. Reads /proc.
std::vector<SessionProcess> session_processes(pid_t leader);

/// The process among a rank's processes that is its program, and not a wrapper such as a shell: the oldest one that
/// catches SIGABRT, else the first child of a shell, else the rank's own. Null if there is none.
const SessionProcess* program_among(const std::vector<SessionProcess>& processes);

}  // namespace runjob
