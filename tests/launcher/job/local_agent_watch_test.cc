#include "launcher/job/local_agent_watch.hpp"

#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "launcher/processes/pipe.hpp"
#include "launcher/processes/process_tree.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/manual_clock.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

/// Three real processes with the names of an agent and its guards, one below the other, which only wait.
class Family {
 public:
  Family() {
    Pipe pids = make_pipe();
    top_ = ::fork();
    if (top_ == 0) live(pids.writer.get(), {"runjob-guard", "runjob-guard-2", "runjob-agent"});
    for (pid_t* pid : {&guard, &inner, &agent}) REQUIRE(::read(pids.reader.get(), pid, sizeof *pid) == sizeof *pid);
  }
  ~Family() {
    for (const pid_t pid : {agent, inner, guard}) ::kill(pid, SIGKILL);
    ::waitpid(top_, nullptr, 0);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  /// Stops the process and waits until it has stopped.
  static void stop(pid_t pid) {
    ::kill(pid, SIGSTOP);
    while (find_process(pid)->state != 'T') ::usleep(1000);
  }

  pid_t guard = -1, inner = -1, agent = -1;

 private:
  [[noreturn]] static void live(int pids, std::vector<const char*> names) {
    ::prctl(PR_SET_NAME, names.front());
    const pid_t own = ::getpid();
    if (::write(pids, &own, sizeof own) != sizeof own) ::_exit(1);
    names.erase(names.begin());
    if (!names.empty() && ::fork() == 0) live(pids, names);
    for (;;) ::pause();
  }

  pid_t top_ = -1;
};

struct Watched {
  ManualClock clock;
  std::vector<std::string> stopped, late;
  LocalAgentWatch watch{clock.make_alarm(),
                        {[this](const std::string& why) { stopped.push_back(why); },
                         [this](const std::string& what) { late.push_back(what); }}};
};

bool is_dead(pid_t pid) {
  const auto process = find_process(pid);
  return !process || process->state == 'Z';
}

}  // namespace

TEST_CASE("an agent that is stopped, or below a stopped guard, is killed, and the guards go on", "[multiproc]") {
  Family family;
  Watched side;
  side.watch.start(family.agent);
  side.clock.advance(10s);
  CHECK(side.stopped.empty());
  const pid_t Family::*which = GENERATE(&Family::agent, &Family::inner, &Family::guard);
  const pid_t victim = family.*which;
  Family::stop(victim);
  side.clock.advance(5s);
  CHECK(side.stopped.empty());
  side.clock.advance(1s);
  REQUIRE(side.stopped.size() == 1);
  const std::string ending = " (pid " + std::to_string(victim) + ") on this host has been stopped for 5 s";
  CHECK_THAT(side.stopped.front(), ContainsSubstring(ending));
  while (!is_dead(family.agent)) ::usleep(1000);
  for (const pid_t pid : {family.inner, family.guard}) {
    while (find_process(pid)->state == 'T') ::usleep(1000);
    CHECK_FALSE(is_dead(pid));
  }
  CHECK(side.clock.pending() == 0);
}

TEST_CASE("an agent that is stopped for a short time goes on", "[multiproc]") {
  Family family;
  Watched side;
  side.watch.start(family.agent);
  for (int i = 0; i < 3; ++i) {
    Family::stop(family.agent);
    side.clock.advance(4s);
    ::kill(family.agent, SIGCONT);
    while (find_process(family.agent)->state == 'T') ::usleep(1000);
    side.clock.advance(1s);
  }
  CHECK(side.stopped.empty());
}

TEST_CASE("an agent that is late, and not stopped, is told once and waited for", "[multiproc]") {
  Family family;
  Watched side;
  side.watch.start(family.agent);
  side.watch.expect_end(7s);
  side.clock.advance(6s);
  CHECK(side.late.empty());
  side.clock.advance(100s);
  REQUIRE(side.late.size() == 1);
  CHECK(side.late.front() == "the agent (pid " + std::to_string(family.agent) +
                                 ") has not ended its ranks in time; it is not stopped, so runjob waits");
  CHECK(side.stopped.empty());
  CHECK_FALSE(is_dead(family.agent));
}

TEST_CASE("a process that is no agent is not watched", "[multiproc]") {
  Watched side;
  side.watch.start(::getpid());
  CHECK(side.clock.pending() == 0);
}
