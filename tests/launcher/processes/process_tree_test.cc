#include "launcher/processes/process_tree.hpp"

#include <cerrno>
#include <signal.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

/// A child that ignores SIGTERM, with a daemon below it (own session, its parent gone) that says when it is
/// there.
void start_family(int ready) {
  if (::fork() != 0) return;
  ::signal(SIGTERM, SIG_IGN);
  if (::fork() == 0) {
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    static_cast<void>(!::write(ready, "d", 1));
  }
  ::pause();
  ::_exit(0);
}

/// Runs in a process of its own: starts three families, ends them, and exits 0 if none is left.
[[noreturn]] void reap_families() {
  become_subreaper();
  int ready[2];
  if (::pipe(ready) != 0) ::_exit(2);
  for (int i = 0; i < 3; ++i) start_family(ready[1]);
  char byte = 0;
  for (int i = 0; i < 3; ++i) static_cast<void>(!::read(ready[0], &byte, 1));
  ::_exit(kill_descendants(10s) && children().empty() ? 0 : 1);
}

}  // namespace

TEST_CASE("kill_descendants ends children, grandchildren and daemons, and only those", "[unit]") {
  const pid_t stranger = ::fork();  // a child of the test, not of the reaper below
  if (stranger == 0) {
    ::pause();
    ::_exit(0);
  }
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t reaper = ::fork();
  if (reaper == 0) reap_families();
  writer.reset();
  int status = -1;
  REQUIRE(::waitpid(reaper, &status, 0) == reaper);
  CHECK(status == 0);
  char byte = 0;
  CHECK(::read(reader.get(), &byte, 1) == 0);  // every process of the families held the write end
  CHECK(::kill(stranger, 0) == 0);
  ::kill(stranger, SIGKILL);
  CHECK(::waitpid(stranger, nullptr, 0) == stranger);
}

TEST_CASE("descendants are listed with their group, without zombies and what is below a boundary", "[unit]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::setsid();
    ::prctl(PR_SET_NAME, "a (b) c");
    const pid_t child = ::fork();
    if (child != 0) static_cast<void>(!::write(writer.get(), &child, sizeof child));
    ::pause();
    ::_exit(0);
  }
  pid_t child = -1;
  REQUIRE(::read(reader.get(), &child, sizeof child) == sizeof child);
  const std::vector<Descendant> found = descendants("runjob-guard");
  REQUIRE(found.size() == 2);
  CHECK(found[0].pid == parent);
  CHECK(found[0].parent == ::getpid());
  CHECK(found[0].group == parent);
  CHECK(found[0].name == "a (b) c");
  CHECK(found[1].pid == child);
  CHECK(found[1].group == parent);
  CHECK(descendants("a (b) c").empty());
  ::kill(child, SIGKILL);
  ::kill(parent, SIGKILL);
  siginfo_t ended;
  REQUIRE(::waitid(P_PID, static_cast<id_t>(parent), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(descendants("runjob-guard").empty());
  REQUIRE(::waitpid(parent, nullptr, 0) == parent);
}

TEST_CASE("children lists this process's children", "[unit]") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  CHECK(children() == std::vector<pid_t>{child});
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(children().empty());
}
