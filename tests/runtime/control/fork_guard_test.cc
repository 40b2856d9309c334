#include "runtime/control/fork_guard.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.hpp"

namespace fork_guard = runjob::runtime::fork_guard;

namespace {

bool called_in_child = false;

/// What `check` returns in a forked child.
template <class Check>
bool in_child(Check check) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

}  // namespace

TEST_CASE("a forked child does not keep guarded descriptors, the parent does", "[runtime][unit]") {
  fork_guard::install([] { called_in_child = true; });
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  fork_guard::add(ends[0]);
  CHECK(in_child([&] { return !is_open(ends[0]) && is_open(ends[1]) && called_in_child; }));
  CHECK(is_open(ends[0]));
  CHECK_FALSE(called_in_child);
  fork_guard::close(ends[0]);
  CHECK_FALSE(is_open(ends[0]));
  const int reused = ::dup(ends[1]);
  REQUIRE(reused == ends[0]);
  CHECK(in_child([&] { return is_open(reused); }));
  ::close(reused);
  ::close(ends[1]);
}
