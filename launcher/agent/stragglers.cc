#include "launcher/agent/stragglers.hpp"

#include <map>
#include <signal.h>
#include <utility>

#include "launcher/processes/process_handle.hpp"
#include "launcher/processes/process_tree.hpp"

namespace runjob {

Stragglers::Stragglers(boost::asio::any_io_executor executor, const RankProcesses& ranks, Report report)
    : ranks_(ranks), report_(std::move(report)), timer_(executor) {}

void Stragglers::terminate() {
  std::map<pid_t, ProcessHandle> handles;
  for (const Descendant& process : descendants("runjob-guard")) handles.try_emplace(process.pid, process.pid);
  for (const Descendant& process : descendants("runjob-guard")) {  // the numbers still mean what the handles do
    const auto handle = handles.find(process.pid);
    if (handle == handles.end() || ranks_.is_running(process.group)) continue;
    if (!terminated_.insert(process.pid).second) continue;
    handle->second.signal(SIGTERM);
    handle->second.signal(SIGCONT);  // a stopped process acts on no signal
  }
}

void Stragglers::watch(std::chrono::milliseconds grace) {
  if (grace <= kPatience) return stop();
  timer_.expires_after(kPatience);
  timer_.async_wait([this, grace](boost::system::error_code error) {
    if (error) return;
    const Remaining found = remaining(grace - kPatience);
    if (!found.processes.empty()) report_(found);
  });
}

Remaining Stragglers::remaining(std::chrono::milliseconds left) const {
  Remaining result;
  result.left_ms = left.count();
  for (const Descendant& process : descendants("runjob-guard")) {
    const int number = ranks_.number_of(process.pid);
    if (number < 0 && ranks_.is_running(process.group)) continue;  // a part of a rank that runs
    result.processes.push_back({number, process.pid, process.name});
  }
  return result;
}

}  // namespace runjob
