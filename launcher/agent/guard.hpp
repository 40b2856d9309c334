#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace runjob {

/// The memory that guard and agent share after the fork.
struct GuardShared {
  std::atomic<std::int64_t> grace_ms{0};  ///< time that the agent may take to end the ranks when the channel dies
};

/// The agent's connection to its guard.
struct Guarded {
  GuardShared* shared = nullptr;
  pid_t guard = -1;
  std::string directory;  ///< for the agent's sockets; mode 0700, a path under 80 bytes; the guard removes it
};

/// Splits this process in two. The caller returns as the child, the agent. The parent stays as its guard and never
/// returns. It is the subreaper and parent of the agent. It kills every descendant when the agent dies for any reason,
/// or when the channel on descriptor 0 has been dead for the grace period and three seconds more. Then it removes the
/// directory and exits; only then does the channel's other end see the end of the stream. If the guard is killed, the
/// agent gets SIGTERM.
/// Threads  no other thread may exist yet.
/// Errors   throws Error(kSystem).
Guarded start_guard();

}  // namespace runjob
