#pragma once

#include <chrono>
#include <sys/types.h>
#include <vector>

/// The processes below this one. Guard and agent are child subreapers (prctl(2), PR_SET_CHILD_SUBREAPER):
/// when a process of the job dies, its children become theirs, also after setsid() or a double fork. A child
/// that has not been waited for keeps its pid, so signalling children never hits a stranger.
namespace runjob {

/// Makes this process the one that inherits orphans among its descendants.
void become_subreaper();

/// This process's children, zombies included. Reads /proc; empty when that is not there.
std::vector<pid_t> children();

/// Sends SIGKILL to every child, waits for them, and again for the children that these leave, until none is
/// left or `limit` has passed (a process may hang in the kernel). Returns whether none is left.
bool kill_descendants(std::chrono::milliseconds limit);

}  // namespace runjob
