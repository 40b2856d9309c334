#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

/// The processes below this one. Guard and agent are child subreapers (prctl(2), PR_SET_CHILD_SUBREAPER): when a
/// process of the job dies, its children become theirs, also after setsid() or a double fork. A child that has not been
/// waited for keeps its pid, so that a signal to a child never reaches a foreign process.
namespace runjob {

/// Makes this process inherit orphans among its descendants.
void become_subreaper();

/// This process's children, including zombies. Reads /proc; empty if /proc is not available.
std::vector<pid_t> children();

/// A process below this one.
struct Descendant {
  pid_t pid = -1;
  pid_t parent = -1;
  pid_t group = -1;  ///< its process group
  std::string name;  ///< at most 15 bytes
};

/// Any process.
struct Process : Descendant {
  char state = 0;  ///< as in proc(5): 'R', 'S', 'D', 'T' when a signal has stopped it, 'Z'
};

/// Reads /proc; nothing if there is no such process.
std::optional<Process> find_process(pid_t pid);

/// The processes below this one, without zombies, parents before their children. The processes below one that is named
/// `boundary` are left out. Reads /proc.
std::vector<Descendant> descendants(std::string_view boundary);

/// Sends SIGKILL to every child, waits for them, and repeats this for the children that they leave, until none is left
/// or `limit` has passed (a process may hang in the kernel). Returns true if none is left.
bool kill_descendants(std::chrono::milliseconds limit);

}  // namespace runjob
