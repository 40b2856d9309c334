#include "launcher/agent/process_tree.hpp"

#include <cerrno>
#include <charconv>
#include <ctime>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <optional>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"

namespace runjob {
namespace {

using UniqueDirectory = UniqueHandle<DIR*, ::closedir, nullptr>;

std::optional<pid_t> to_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

/// The fourth field of /proc/PID/stat; the second, the name, is in parentheses and may hold anything.
std::optional<pid_t> parent_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= line.size()) return std::nullopt;
  const std::string_view rest = std::string_view(line).substr(name_end + 4);  // after ") S "
  return to_pid(rest.substr(0, rest.find(' ')));
}

/// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> children_by_scan() {
  std::vector<pid_t> result;
  const UniqueDirectory proc(::opendir("/proc"));
  if (!proc) return result;
  while (const dirent* entry = ::readdir(proc.get())) {
    const std::optional<pid_t> pid = to_pid(entry->d_name);
    if (pid && parent_of(entry->d_name) == ::getpid()) result.push_back(*pid);
  }
  return result;
}

}  // namespace

void become_subreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<pid_t> children() {
  const std::string self = std::to_string(::getpid());
  std::ifstream file("/proc/self/task/" + self + "/children");
  if (!file) return children_by_scan();
  std::vector<pid_t> result;
  for (pid_t pid = 0; file >> pid;) result.push_back(pid);
  return result;
}

bool kill_descendants(std::chrono::milliseconds limit) {
  sigset_t child_signal;
  ::sigemptyset(&child_signal);
  ::sigaddset(&child_signal, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_signal, nullptr);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    for (const pid_t pid : children()) ::kill(pid, SIGKILL);
    pid_t reaped = 0;
    do {
      reaped = ::waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0);
    if (reaped < 0 && errno == ECHILD) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    const timespec moment{0, 20'000'000};  // a grandchild may become a child without a SIGCHLD
    ::sigtimedwait(&child_signal, nullptr, &moment);
  }
}

}  // namespace runjob
