#pragma once

#include <sys/types.h>

#include "base/unique_handle.hpp"

namespace runjob {

/// A process that is not a child of ours, so that it may end at any moment and its number may be used again. Make the
/// handle first, then look in /proc whether the number is still that of the process that is meant, then signal: the
/// signal reaches that process or none.
/// Source   pidfd_open(2), pidfd_send_signal(2); Linux before 5.3 has neither, and the signal goes to the number.
class ProcessHandle {
 public:
  explicit ProcessHandle(pid_t pid);

  /// False when the process has ended, or may not be signalled.
  bool signal(int number) const;
  /// The same, for the main thread: the kernel gives a process's signal to whichever thread takes it first.
  bool signal_main_thread(int number) const;

 private:
  pid_t pid_;
  UniqueFd process_;
  bool ended_ = false;  ///< before the handle was made
};

}  // namespace runjob
