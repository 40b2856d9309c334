#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace runjob {

/// The memory that the guards and the agent share after the forks.
struct GuardShared {
  std::atomic<std::int64_t> grace_ms{0};   ///< time that the agent may take to end the ranks when the channel dies
  std::atomic<bool> is_guard_lost{false};  ///< the outer guard has died; the agent gets SIGTERM after it is set
};

/// The agent's connection to its guard.
struct Guarded {
  GuardShared* shared = nullptr;
  pid_t guard = -1;       ///< the inner one, the agent's parent
  std::string directory;  ///< for the agent's sockets; mode 0700, a path under 80 bytes; the guard removes it
};

/// Splits this process in three. The caller returns as the grandchild, the agent. Its parent and grandparent stay as
/// its inner and outer guard and never return. Both are subreapers. Each kills every descendant when the agent dies for
/// any reason, or when the channel on descriptor 0 has been dead for the grace period and three seconds more. Then it
/// removes the directory and exits; only then does the channel's other end see the end of the stream. There are two of
/// them so that nothing of the job is left when the agent and one guard are killed together. If a guard is killed, the
/// agent gets SIGTERM.
/// Threads  no other thread may exist yet.
/// Errors   throws Error(kSystem).
Guarded start_guard();

}  // namespace runjob
