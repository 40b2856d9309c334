#include "launcher/agent/guard.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/unique_handle.hpp"
#include "launcher/processes/pipe.hpp"
#include "launcher/processes/process_tree.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

/// mkdtemp() in the user's run-time directory, else in /tmp: a Unix socket's path in it must stay short.
std::string make_directory() {
  constexpr std::size_t kLongestBase = 60;
  const Environment environment = current_environment();
  const auto runtime = environment.find("XDG_RUNTIME_DIR");
  for (std::string base : {runtime == environment.end() ? std::string() : runtime->second, std::string("/tmp")}) {
    if (base.empty() || base.size() > kLongestBase) continue;
    base += "/runjob-XXXXXX";
    if (::mkdtemp(base.data()) != nullptr) return base;
  }
  const int reason = errno;
  throw system_error(
      "runjob needs a directory for its sockets on this host, in XDG_RUNTIME_DIR or /tmp, and cannot make one", reason);
}

constexpr auto kKillLimit = 10s;

/// The processes and pipes that a guard watches. A pipe ends when the process that holds its other end has died; a
/// pidfd would need Linux 5.3.
struct Watched {
  int agent_end = -1;  ///< a pipe whose other end only the agent holds
  int outer_end = -1;  ///< a pipe whose other end only the outer guard holds; -1 in the outer guard
  int inner_end = -1;  ///< a pipe whose other end only the inner guard holds; -1 in the inner guard
  pid_t agent = -1;    ///< in the inner guard
};

/// The agent ends the job as if its channel had ended; the inner guard stays until it has.
void on_outer_guard_died(GuardShared& shared, pid_t agent) {
  shared.is_guard_lost = true;
  ::kill(agent, SIGTERM);
}

/// Waits until the agent has died, or until its time is up after the channel has died.
void wait_for_end(const Watched& watch, GuardShared& shared) {
  pollfd watched[3] = {{watch.agent_end, POLLIN, 0}, {STDIN_FILENO, POLLRDHUP, 0}, {watch.outer_end, POLLIN, 0}};
  for (;;) {
    if (::poll(watched, 3, -1) < 0) continue;  // a signal
    if (watched[0].revents != 0) return;
    if (watched[1].revents != 0) break;
    on_outer_guard_died(shared, watch.agent);
    watched[2].fd = -1;
  }
  const auto limit = std::chrono::milliseconds(shared.grace_ms.load()) + 3s;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= 0ms || ::poll(watched, 1, static_cast<int>(left.count())) > 0) return;
  }
}

/// The outer guard leaves the killing to the inner one and waits for it. If it killed the inner one and died itself
/// before it had killed the others, these would be left.
[[noreturn]] void guard(const Watched& watch, GuardShared& shared, const std::string& directory) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  ::close(STDOUT_FILENO);  // else the launcher would not see the end of a pipe
  wait_for_end(watch, shared);
  pollfd inner{watch.inner_end, POLLIN, 0};
  if (watch.inner_end >= 0) ::poll(&inner, 1, static_cast<int>(std::chrono::milliseconds(kKillLimit + 2s).count()));
  kill_descendants(kKillLimit);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  ::_exit(0);
}

/// Errors  Error(kSystem).
pid_t fork_agent_process() {
  const pid_t child = ::fork();
  if (child < 0) throw system_error("cannot fork the agent", errno);
  return child;
}

}  // namespace

Guarded start_guard() {
  ::prctl(PR_SET_NAME, "runjob-guard");
  ::setsid();  // Ctrl-C in the launcher's terminal is the launcher's to forward
  become_subreaper();
  void* memory = ::mmap(nullptr, sizeof(GuardShared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw system_error("cannot share memory with the guard", errno);
  auto* shared = new (memory) GuardShared;
  const std::string directory = make_directory();
  Pipe agent_life = make_pipe();  // its write end lives as long as the agent
  Pipe outer_life = make_pipe();  // its write end lives as long as the outer guard
  Pipe inner_life = make_pipe();  // its write end lives as long as the inner guard
  if (fork_agent_process() > 0) {
    agent_life.writer.reset();
    inner_life.writer.reset();
    static_cast<void>(outer_life.writer.release());
    guard({.agent_end = agent_life.reader.get(), .inner_end = inner_life.reader.get()}, *shared, directory);
  }
  inner_life.reader.reset();
  ::prctl(PR_SET_NAME, "runjob-guard-2");
  outer_life.writer.reset();
  become_subreaper();
  const pid_t inner = ::getpid();
  const pid_t agent = fork_agent_process();
  if (agent > 0) {
    agent_life.writer.reset();
    static_cast<void>(inner_life.writer.release());
    guard({.agent_end = agent_life.reader.get(), .outer_end = outer_life.reader.get(), .agent = agent}, *shared,
          directory);
  }
  outer_life.reader.reset();
  inner_life.writer.reset();
  static_cast<void>(agent_life.writer.release());
  agent_life.reader.reset();
  ::prctl(PR_SET_NAME, "runjob-agent");
  ::setsid();  // as a batch system that signals the guard's process group does not reach the ranks either
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != inner) ::_exit(1);  // the inner guard died before the line above
  become_subreaper();
  return {shared, inner, directory};
}

}  // namespace runjob
