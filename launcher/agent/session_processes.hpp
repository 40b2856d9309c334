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
  bool handles_abort = false;  ///< it catches SIGABRT: Python's faulthandler does, and prints where it is
};

/// The processes of the session that `leader` has made, oldest first, zombies left out. Reads /proc.
std::vector<SessionProcess> session_processes(pid_t leader);

/// Which of a rank's processes is the program, and not a wrapper such as a shell: the oldest one that catches SIGABRT, else the
/// first child of a shell, else the rank's own. Null when there is none.
const SessionProcess* program_among(const std::vector<SessionProcess>& processes);

}  // namespace runjob
