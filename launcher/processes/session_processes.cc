#include "launcher/processes/session_processes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <dirent.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/unique_handle.hpp"

namespace runjob {
namespace {

using UniqueDirectory = UniqueHandle<DIR*, ::closedir, nullptr>;

/// True if SigCgt of /proc/PID/status has the bit of SIGABRT.
bool catches_abort(const std::string& folder) {
  std::ifstream file(folder + "/status");
  constexpr std::string_view kField = "SigCgt:\t";
  for (std::string line; std::getline(file, line);) {
    if (!std::string_view(line).starts_with(kField)) continue;
    std::uint64_t mask = 0;
    std::from_chars(line.data() + kField.size(), line.data() + line.size(), mask, 16);
    return (mask >> (SIGABRT - 1) & 1) != 0;
  }
  return false;
}

/// Source  proc(5), /proc/PID/stat: fields 3 state, 4 ppid, 6 session, 22 starttime; the name before them may hold
///         anything.
std::optional<SessionProcess> read_process(const std::string& pid, pid_t session) {
  const std::string folder = "/proc/" + pid;
  std::ifstream file(folder + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_begin = line.find('(');
  const std::size_t name_end = line.rfind(')');
  if (name_begin == std::string::npos || name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name_end + 1));
  SessionProcess process;
  char state = 0;
  pid_t group = 0;
  pid_t its_session = 0;
  rest >> state >> process.parent >> group >> its_session;
  std::string skipped;
  for (int field = 7; field < 22; ++field) rest >> skipped;
  rest >> process.started;
  if (!rest || its_session != session || state == 'Z') return std::nullopt;
  process.pid = static_cast<pid_t>(std::stol(line));
  process.name = line.substr(name_begin + 1, name_end - name_begin - 1);
  process.handles_abort = catches_abort(folder);
  return process;
}

bool is_shell(const std::string& name) {
  constexpr std::array<std::string_view, 7> kShells = {"sh", "bash", "dash", "zsh", "ksh", "busybox", "fish"};
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

}  // namespace

std::vector<SessionProcess> session_processes(pid_t leader) {
  std::vector<SessionProcess> result;
  const UniqueDirectory proc(::opendir("/proc"));
  if (!proc) return result;
  while (const dirent* entry = ::readdir(proc.get())) {
    if (std::string_view(entry->d_name).find_first_not_of("0123456789") != std::string_view::npos) continue;
    if (auto process = read_process(entry->d_name, leader)) result.push_back(std::move(*process));
  }
  std::sort(result.begin(), result.end(), [](const SessionProcess& a, const SessionProcess& b) {
    return a.started != b.started ? a.started < b.started : a.pid < b.pid;
  });
  return result;
}

const SessionProcess* program_among(const std::vector<SessionProcess>& processes) {
  if (processes.empty()) return nullptr;
  const auto handler = std::find_if(processes.begin(), processes.end(), [](const auto& p) { return p.handles_abort; });
  if (handler != processes.end()) return &*handler;
  const SessionProcess* program = &processes.front();
  while (is_shell(program->name)) {
    const auto child =
        std::find_if(processes.begin(), processes.end(), [&](const auto& p) { return p.parent == program->pid; });
    if (child == processes.end()) break;
    program = &*child;
  }
  return program;
}

}  // namespace runjob
