#include "launcher/processes/session_processes.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "launcher/processes/child_process.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

SessionProcess process(pid_t pid, pid_t parent, const std::string& name, bool handles_abort = false) {
  return {pid, parent, 0, name, handles_abort};
}

pid_t program(const std::vector<SessionProcess>& processes) {
  const SessionProcess* found = program_among(processes);
  return found == nullptr ? -1 : found->pid;
}

}  // namespace

TEST_CASE("the processes of a session are found, with what they do about SIGABRT", "[unit]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ChildSpec spec;  // a shell with a handler for the signal, and a child without
  spec.command = {"/bin/sh", "-c", "trap : ABRT; sleep 600 & echo; wait"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.standard_output = writer.get();
  spec.new_session = true;
  spec.die_with_parent = true;
  const ChildStart start = start_child(spec);
  REQUIRE(start.pid > 0);
  char newline = 0;
  REQUIRE(::read(reader.get(), &newline, 1) == 1);  // the trap is set, the child has been forked
  const std::vector<SessionProcess> found = session_processes(start.pid);
  REQUIRE(found.size() == 2);
  CHECK(found[0].pid == start.pid);
  CHECK(found[0].handles_abort);
  CHECK(found[1].parent == start.pid);
  CHECK(program_among(found) == &found[0]);
  ::kill(-start.pid, SIGKILL);
  ::waitpid(start.pid, nullptr, 0);
}

TEST_CASE("a rank's program is what catches SIGABRT, or what a shell has started, or the rank itself", "[unit]") {
  CHECK(program({}) == -1);
  CHECK(program({process(10, 1, "train")}) == 10);
  CHECK(program({process(10, 1, "bash"), process(11, 10, "train"), process(12, 10, "tee")}) == 11);
  CHECK(program({process(10, 1, "bash"), process(11, 10, "sh"), process(12, 11, "train")}) == 12);
  CHECK(program({process(10, 1, "bash")}) == 10);
  CHECK(program({process(10, 1, "conda"), process(11, 10, "python", true), process(12, 11, "python", true)}) == 11);
}
