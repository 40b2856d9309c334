#include "launcher/processes/process_handle.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <linux/sched.h>
#include <signal.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// A child that waits for a signal. `pid`: its number, which must be free; 0 for any. -1 if it cannot be made.
pid_t waiting_child(pid_t pid = 0) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = pid == 0 ? 0 : reinterpret_cast<std::uintptr_t>(&pid);
  arguments.set_tid_size = pid == 0 ? 0 : 1;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (child == 0) {
    for (;;) ::pause();
  }
  return child;
}

void end_and_reap(pid_t child) {
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
}

}  // namespace

TEST_CASE("a process that has got the number of an ended one is not signalled", "[unit]") {
  const pid_t ended = waiting_child();
  REQUIRE(ended > 0);
  const ProcessHandle process(ended);
  end_and_reap(ended);
  const pid_t stranger = waiting_child(ended);
  if (stranger < 0) {
    WARN("skipped: a process cannot be given a number here, which needs root and Linux 5.5: " +
         std::string(std::strerror(errno)));
    return;
  }
  REQUIRE(stranger == ended);
  CHECK_FALSE(process.signal(SIGKILL));
  CHECK(ProcessHandle(stranger).signal(0));
  CHECK(::waitpid(stranger, nullptr, WNOHANG) == 0);  // it is still there
  end_and_reap(stranger);
}

TEST_CASE("a handle signals its process, and nobody once that has ended", "[unit]") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  const ProcessHandle process(child);
  CHECK(process.signal(SIGKILL));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK_FALSE(process.signal(0));
  CHECK_FALSE(ProcessHandle(child).signal(0));
}
