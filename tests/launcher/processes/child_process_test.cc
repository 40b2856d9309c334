#include "launcher/processes/child_process.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_directory.hpp"

using namespace runjob;

namespace {

/// Starts `spec`, returns what it wrote to standard output and its wait status.
std::pair<std::string, int> run(ChildSpec spec) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  spec.standard_output = writer.get();
  const ChildStart start = start_child(spec);
  REQUIRE(start.pid > 0);
  writer.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(reader.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  REQUIRE(::waitpid(start.pid, &status, 0) == start.pid);
  return {text, status};
}

}  // namespace

TEST_CASE("a child gets exactly the given environment, directory and command", "[unit]") {
  ChildSpec spec;
  spec.command = {"/bin/sh", "-c", "env; pwd; printf '%s|' \"$@\"", "sh", "a b", ""};
  spec.environment = {{"ONLY", "this\nvalue"}};
  spec.working_directory = "/usr";
  const auto [text, status] = run(spec);
  CHECK(status == 0);
  CHECK_THAT(text, ContainsSubstring("ONLY=this\nvalue\n"));
  CHECK_THAT(text, ContainsSubstring("/usr\na b||"));
  CHECK(text.find("HOME=") == std::string::npos);
}

TEST_CASE("standard input is /dev/null unless given, other descriptors are closed", "[unit]") {
  const UniqueFd inherited(::open("/dev/null", O_RDONLY));  // without close-on-exec
  ChildSpec spec;
  spec.command = {"/bin/sh", "-c", "cat; ls /proc/self/fd | wc -l"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  CHECK(run(spec).first == "4\n");  // 0, 1, 2 and ls's own
}

TEST_CASE("a new session leaves the group and has all signals at their defaults", "[unit]") {
  ::signal(SIGPIPE, SIG_IGN);
  ChildSpec spec;
  spec.command = {"/bin/sh", "-c", "ps -o pid=,sid=,pgid= -p $$; grep -E 'SigIgn|SigBlk' /proc/self/status"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.new_session = true;
  const auto [text, status] = run(spec);
  long pid = 0, session = 0, group = 0;
  REQUIRE(std::sscanf(text.c_str(), "%ld %ld %ld", &pid, &session, &group) == 3);
  CHECK(pid == session);
  CHECK(pid == group);
  CHECK_THAT(text, ContainsSubstring("SigIgn:\t0000000000000000"));
  CHECK_THAT(text, ContainsSubstring("SigBlk:\t0000000000000000"));
}

TEST_CASE("a child runs on the CPUs that it is given", "[unit]") {
  cpu_set_t ours;
  REQUIRE(::sched_getaffinity(0, sizeof ours, &ours) == 0);
  std::size_t last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &ours)) --last;
  ChildSpec spec;
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.command = {"/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status"};
  spec.cpus = {static_cast<int>(last)};
  CHECK(run(spec).first == "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
  spec.cpus = {1000};  // more than there can be here
  const ChildStart start = start_child(spec);
  CHECK(start.error.step == ChildStartError::Step::kAffinity);
  CHECK(start.error.error_number == EINVAL);
}

TEST_CASE("what cannot be started says at which step and why, and leaves no process", "[unit]") {
  const TemporaryDirectory directory;
  const std::string data = directory.path() + "/data.txt";
  std::ofstream(data) << "not a program";
  const auto failure = [](std::vector<std::string> command, const std::string& working_directory,
                          Environment environment) {
    ChildSpec spec;
    spec.command = std::move(command);
    spec.working_directory = working_directory;
    spec.environment = std::move(environment);
    const ChildStart start = start_child(spec);
    CHECK(start.pid == -1);
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
    return start.error;
  };
  using Step = ChildStartError::Step;
  const ChildStartError missing = failure({"no-such-program"}, "", {{"PATH", "/usr/bin:/bin"}});
  CHECK(missing.step == Step::kExec);
  CHECK(missing.error_number == ENOENT);
  const ChildStartError forbidden = failure({data}, "", {});
  CHECK(forbidden.step == Step::kExec);
  CHECK(forbidden.error_number == EACCES);
  const ChildStartError nowhere = failure({"true"}, directory.path() + "/missing", {});
  CHECK(nowhere.step == Step::kWorkingDirectory);
  CHECK(nowhere.error_number == ENOENT);
}

TEST_CASE("a script without an interpreter line is given to the shell, as execvp does", "[unit]") {
  const TemporaryDirectory directory;
  const std::string script = directory.path() + "/script";
  std::ofstream(script) << "echo script $1\n";
  REQUIRE(::chmod(script.c_str(), 0755) == 0);
  ChildSpec spec;
  spec.command = {"script", "argument"};
  spec.environment = {{"PATH", "/nowhere:" + directory.path()}};
  CHECK(run(spec).first == "script argument\n");
}

TEST_CASE("PATH is searched in its order, and names with a slash are not searched", "[unit]") {
  CHECK(executable_candidates("a/b", {{"PATH", "/x"}}) == std::vector<std::string>{"a/b"});
  CHECK(executable_candidates("b", {{"PATH", "/x::/y"}}) == std::vector<std::string>{"/x/b", "b", "/y/b"});
  CHECK(executable_candidates("b", {}) == std::vector<std::string>{"/usr/local/bin/b", "/bin/b", "/usr/bin/b"});
  CHECK(executable_candidates("", {{"PATH", "/x"}}).empty());
}

TEST_CASE("a child has the limit of descriptors that this process was started with", "[unit]") {
  rlimit first{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &first) == 0);
  raise_descriptor_limit();
  rlimit raised{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &raised) == 0);
  CHECK(raised.rlim_cur == first.rlim_max);
  ChildSpec spec;
  spec.command = {"/bin/sh", "-c", "ulimit -Sn"};
  CHECK(run(spec).first == std::to_string(first.rlim_cur) + "\n");
}
