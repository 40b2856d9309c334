#include "launcher/host_sources/discover_first_hosts.hpp"

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

std::vector<Host> discover(const std::string& script, int slots, std::vector<std::string>& warnings,
                           std::chrono::milliseconds patience = 60s) {
  const FirstHosts wanted{script, "--host-discovery-script", 2, slots, patience};
  return discover_first_hosts(wanted, current_environment(),
                              [&](const std::string& line) { warnings.push_back(line); });
}

/// Discovers in a child that deals with the signal `number` by `action` at its start.
pid_t in_child(int number, void (*action)(int), const std::string& script) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::signal(number, action);
  std::vector<std::string> warnings;
  try {
    discover(script, 1, warnings);
  } catch (const Error&) {
    ::_exit(1);
  }
  ::_exit(0);
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("the first hosts are those of the first list with enough slots", "[multiproc]") {
  std::vector<std::string> warnings;
  const std::vector<Host> hosts = discover("echo s1; echo s2:3; echo s1", 5, warnings);
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].slots == 2);
  CHECK(hosts[1].slots == 3);
  CHECK(warnings.empty());
  const std::string file = "/tmp/runjob_discover_" + std::to_string(::getpid());
  CHECK(discover("cat " + file + " 2>/dev/null || { echo s1:1; echo s1:4 > " + file + "; }", 4, warnings).at(0).slots ==
        4);
  ::unlink(file.c_str());
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("lists 1 of the 4 slots that the job needs; waiting up to 60 s for more"));
}

TEST_CASE("a script that fails at first, or prints a bad line, is the user's mistake", "[multiproc]") {
  std::vector<std::string> warnings;
  CHECK_THROWS_WITH(discover("echo broken >&2; exit 7", 1, warnings),
                    "--host-discovery-script: the first run of 'echo broken >&2; exit 7' exited with status 7: broken");
  CHECK_THROWS_WITH(discover("echo s1:many", 1, warnings), ContainsSubstring("line 1, column 4: expected a number"));
  try {
    discover("true", 1, warnings, 10ms);
    FAIL("it lists no slots");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kTimeout);
    CHECK_THAT(error.what(), ContainsSubstring("0 of the 1 slot "));
  }
}

TEST_CASE("a signal that ends runjob during the first discovery ends the script's processes too", "[multiproc]") {
  const int number = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const std::string fifo = "/tmp/runjob_discover_" + std::to_string(::getpid());
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const pid_t launcher = in_child(number, SIG_DFL, "exec 5> " + fifo + "; echo ready >&5; sleep 1000; true");
  const UniqueFd reader(::open(fifo.c_str(), O_RDONLY | O_CLOEXEC));
  ::unlink(fifo.c_str());
  char ready[6];
  REQUIRE(::read(reader.get(), ready, sizeof ready) == sizeof ready);
  ::kill(launcher, number);
  const int status = status_of(launcher);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == number);
  pollfd end{reader.get(), POLLIN, 0};
  REQUIRE(::poll(&end, 1, 10'000) == 1);
  CHECK(::read(reader.get(), ready, sizeof ready) == 0);  // no process has the other end any more
}

TEST_CASE("a hang-up that was ignored from the start stays ignored during the first discovery", "[multiproc]") {
  CHECK(status_of(in_child(SIGHUP, SIG_IGN, "kill -HUP $PPID; echo s1:1")) == 0);
}
