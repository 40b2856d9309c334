#pragma once

#include <cerrno>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/environment.hpp"

namespace runjob {

/// How to start a process.
struct ChildSpec {
  std::vector<std::string> command;  ///< a name without '/' is looked up in PATH of `environment`, as execvp does
  Environment environment;           ///< all of it
  std::string working_directory;     ///< "" = this process's
  int standard_input = -1;           ///< descriptors of this process, lent; -1 = /dev/null
  int standard_output = -1;
  int standard_error = -1;
  bool new_session = false;      ///< setsid(): its own session and process group, no terminal
  bool die_with_parent = false;  ///< SIGKILL when the thread that forks it ends (PR_SET_PDEATHSIG)
  std::vector<int> cpus;         ///< numbers of those it may run on; none = as this process
  bool traceable = false;        ///< this process's other children may trace it (PR_SET_PTRACER)
};

/// The error of a file whose interpreter ("#!" in its first line) or loader is not there. For execve(2), which never
/// gives this one, that is ENOENT.
constexpr int kNoInterpreter = ELIBACC;

/// The text of the error of a start, as strerror() gives it for errno.
std::string start_error_text(int error_number);

/// The failure of a start: errno, and the step that failed.
struct ChildStartError {
  enum class Step { kFork, kWorkingDirectory, kExec, kAffinity };
  Step step = Step::kFork;
  int error_number = 0;
};

/// A started process: its pid. If the start failed, pid is -1, the reason is given, and nothing is left of the process.
struct ChildStart {
  pid_t pid = -1;
  ChildStartError error;
};

/// Lets this process open as many files as its hard limit allows. Its children get the limit that it was started with,
/// since some programs take time for each descriptor that they may have.
void raise_descriptor_limit();

/// Starts the command and waits until it runs or its start has failed. In the child, signals have their default
/// dispositions and are not blocked, and other descriptors are closed. The child uses this process's memory until it
/// executes (vfork(2)), which costs less than copying it; the calling thread waits meanwhile.
/// Threads  any one; a child that dies with its parent does so with this thread.
ChildStart start_child(const ChildSpec& spec);

/// The file that execvp would run for `name` under `path`: the candidates in order. `name` itself when it has
/// a '/'.
std::vector<std::string> executable_candidates(const std::string& name, const Environment& environment);

}  // namespace runjob
