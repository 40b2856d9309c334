#include "cli/check_build/run_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/unique_handle.hpp"

namespace runjob {
namespace {

using Clock = std::chrono::steady_clock;

/// posix_spawn's two objects, freed at the end: a new process group, /dev/null for input and errors, the
/// default disposition of every signal.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int spawn(pid_t& pid, std::vector<std::string> words, const Environment& environment) const {
    std::vector<std::string> variables;
    for (const auto& [name, value] : environment) variables.push_back(fmt::format("{}={}", name, value));
    const std::vector<char*> arguments = pointers(words);
    return ::posix_spawnp(&pid, arguments.front(), &actions_, &attributes_, arguments.data(),
                          pointers(variables).data());
  }

 private:
  /// As exec wants a list of words: pointers into `words`, then a null one.
  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
  }

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// Reads until the end of `input`, or until `deadline`: false then. What is beyond 1 MiB is dropped.
bool read_until(int input, Clock::time_point deadline, std::string& output) {
  constexpr std::size_t kLargest = std::size_t{1} << 20;
  std::array<char, 4096> block{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wanted{input, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = ::read(input, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    const std::size_t room = kLargest - output.size();
    output.append(block.data(), std::min(static_cast<std::size_t>(count), room));
  }
}

/// Waits for the end of `pid`, at most until `deadline`; returns false if it passes first. Without pidfd (before Linux
/// 5.3) it returns true at once, and the wait for the status takes the time.
bool ends_until(pid_t pid, Clock::time_point deadline) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return true;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wanted{process.get(), POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw system_error("cannot wait for a helper program", errno);
  }
  return status;
}

std::string problem_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& words, const Environment& environment,
                          std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("cannot make a pipe", errno);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ProgramResult result;
  pid_t pid = 0;
  const int error = SpawnSettings(writer.get()).spawn(pid, words, environment);
  if (error != 0) {
    result.problem = fmt::format("could not be started: {}", std::system_category().message(error));
    return result;
  }
  writer.reset();
  const bool ended = read_until(reader.get(), deadline, result.output) && ends_until(pid, deadline);
  if (!ended) ::kill(-pid, SIGKILL);
  const int status = wait_for(pid);
  result.problem =
      ended ? problem_of(status) : fmt::format("did not end within {} s", std::chrono::duration<double>(limit).count());
  return result;
}

}  // namespace runjob
