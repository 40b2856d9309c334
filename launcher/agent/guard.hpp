#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace runjob {

/// What guard and agent share in memory after the fork.
struct GuardShared {
  std::atomic<std::int64_t> grace_ms{0};  ///< how long the agent may take to end the ranks when the channel dies
};

/// What the agent gets from its guard.
struct Guarded {
  GuardShared* shared = nullptr;
  pid_t guard = -1;
  std::string directory;  ///< for the agent's sockets, mode 0700, removed by the guard; its path is under 80 bytes
};

/// Splits this process in two. The caller returns as the child, the agent. The parent stays as its guard and
/// never returns: subreaper and parent of the agent, it kills every descendant when the agent dies for any
/// reason, or when the channel on descriptor 0 has been dead for the grace period and three seconds more;
/// then it removes the directory and exits. The channel's other end sees the end of the stream only when that
/// is done. The agent gets SIGTERM when its guard is killed. Threads  none may exist yet. Errors   throws
/// Error(kSystem).
Guarded start_guard();

}  // namespace runjob
