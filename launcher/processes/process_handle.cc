#include "launcher/processes/process_handle.hpp"

#include <cerrno>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace runjob {

ProcessHandle::ProcessHandle(pid_t pid) : pid_(pid), process_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  ended_ = !process_ && errno == ESRCH;
}

bool ProcessHandle::signal(int number) const {
  if (ended_) return false;
  if (process_) return ::syscall(SYS_pidfd_send_signal, process_.get(), number, nullptr, 0) == 0;
  return ::kill(pid_, number) == 0;
}

/// A pidfd reaches single threads only since Linux 6.9 (PIDFD_SIGNAL_THREAD).
bool ProcessHandle::signal_main_thread(int number) const {
  return !ended_ && ::syscall(SYS_tgkill, pid_, pid_, number) == 0;
}

}  // namespace runjob
