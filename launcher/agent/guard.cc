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

/// Waits until the agent has died, or until its time is up after the channel has died. `agent_end`: a pipe whose other
/// end only the agent holds; a pidfd would need Linux 5.3.
void wait_for_end(int agent_end, const GuardShared& shared) {
  pollfd watched[2] = {{agent_end, POLLIN, 0}, {STDIN_FILENO, POLLRDHUP, 0}};
  while (::poll(watched, 2, -1) < 0 && errno == EINTR) {
  }
  if (watched[0].revents != 0) return;
  const auto limit = std::chrono::milliseconds(shared.grace_ms.load()) + 3s;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= 0ms || ::poll(watched, 1, static_cast<int>(left.count())) > 0) return;
  }
}

[[noreturn]] void guard(int agent_end, const GuardShared& shared, const std::string& directory) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  ::close(STDOUT_FILENO);  // else the launcher would not see the end of a pipe
  wait_for_end(agent_end, shared);
  kill_descendants(10s);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  ::_exit(0);
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
  const pid_t parent = ::getpid();
  Pipe life = make_pipe();  // its write end lives as long as the agent
  const pid_t child = ::fork();
  if (child < 0) throw system_error("cannot fork the agent", errno);
  if (child > 0) {
    life.writer.reset();
    guard(life.reader.get(), *shared, directory);
  }
  static_cast<void>(life.writer.release());
  ::prctl(PR_SET_NAME, "runjob-agent");
  ::setsid();  // as a batch system that signals the guard's process group does not reach the ranks either
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // the guard died before the line above
  become_subreaper();
  return {shared, parent, directory};
}

}  // namespace runjob
