#pragma once

#include <signal.h>

namespace runjob {

/// True if `number` was ignored when this process was started (nohup, a shell's background job) and has not been
/// requested since. Such a signal must stay ignored.
/// Threads  any.
inline bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace runjob
