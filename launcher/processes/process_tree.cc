#include "launcher/processes/process_tree.hpp"

#include <cerrno>
#include <charconv>
#include <ctime>
#include <dirent.h>
#include <fstream>
#include <map>
#include <optional>
#include <signal.h>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

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

/// By parent.
std::multimap<pid_t, Process> all_processes() {
  std::multimap<pid_t, Process> result;
  const UniqueDirectory proc(::opendir("/proc"));
  if (!proc) return result;
  while (const dirent* entry = ::readdir(proc.get())) {
    const std::optional<pid_t> pid = to_pid(entry->d_name);
    const std::optional<Process> process = pid ? find_process(*pid) : std::nullopt;
    if (process) result.emplace(process->parent, *process);
  }
  return result;
}

/// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> children_by_scan() {
  std::vector<pid_t> result;
  const auto processes = all_processes();
  const auto [begin, end] = processes.equal_range(::getpid());
  for (auto each = begin; each != end; ++each) result.push_back(each->second.pid);
  return result;
}

}  // namespace

/// Source  proc(5), /proc/PID/stat: fields 3 state, 4 ppid, 5 pgrp; the name before them may hold anything.
std::optional<Process> find_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_begin = line.find('('), name_end = line.rfind(')');
  if (name_begin == std::string::npos || name_end == std::string::npos) return std::nullopt;
  Process process;
  process.pid = pid;
  process.name = line.substr(name_begin + 1, name_end - name_begin - 1);
  std::istringstream rest(line.substr(name_end + 1));
  if (!(rest >> process.state >> process.parent >> process.group)) return std::nullopt;
  return process;
}

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

std::vector<Descendant> descendants(std::string_view boundary) {
  const auto processes = all_processes();
  std::vector<Descendant> result;
  std::vector<pid_t> parents{::getpid()};
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const auto [begin, end] = processes.equal_range(parents[i]);
    for (auto each = begin; each != end; ++each) {
      const Process& process = each->second;
      if (process.name == boundary) continue;
      parents.push_back(process.pid);
      if (process.state != 'Z') result.push_back(process);
    }
  }
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
