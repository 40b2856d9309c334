#pragma once

#include <csignal>
#include <ctime>
#include <pthread.h>

namespace runjob::runtime {

/// Keeps SIGPIPE from this thread, and from threads it starts meanwhile, for the lifetime of the object. Gloo
/// writes to sockets without MSG_NOSIGNAL, so without this a peer's end would end a process that does not
/// ignore the signal; and what a process does about signals is not the runtime's to change. Source  POSIX: a
/// SIGPIPE from write() goes to the writing thread, and stays pending there while it is blocked.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  /// Takes a SIGPIPE that came meanwhile away, then lets new ones through if they were before.
  ~SigpipeBlock() {
    const timespec now{};
    if (!was_pending_) ::sigtimedwait(&sigpipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

 private:
  sigset_t sigpipe_, before_;
  bool was_pending_ = false;
};

}  // namespace runjob::runtime
