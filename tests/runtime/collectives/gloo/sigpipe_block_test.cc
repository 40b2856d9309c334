#include "runtime/collectives/gloo/sigpipe_block.hpp"

#include <cerrno>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/catch.hpp"

using runjob::runtime::SigpipeBlock;

namespace {

/// Writes to a pipe that nobody reads; the error.
int write_in_vain() {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  ::close(ends[0]);
  const int error = ::write(ends[1], "x", 1) == 1 ? 0 : errno;
  ::close(ends[1]);
  return error;
}

}  // namespace

TEST_CASE("within the block a broken pipe is an error, for threads started in it too", "[runtime][unit]") {
  const SigpipeBlock block;
  CHECK(write_in_vain() == EPIPE);
  int in_thread = 0;
  std::thread([&] { in_thread = write_in_vain(); }).join();
  CHECK(in_thread == EPIPE);
}

TEST_CASE("after the block nothing is left over, and the signal works as before", "[runtime][unit]") {
  const pid_t pid = ::fork();
  if (pid == 0) {
    {
      const SigpipeBlock block;
      write_in_vain();
    }
    sigset_t pending;
    ::sigpending(&pending);
    if (::sigismember(&pending, SIGPIPE) == 1) ::_exit(1);
    write_in_vain();  // ends the process
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGPIPE);
}
