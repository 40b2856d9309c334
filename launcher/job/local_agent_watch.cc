#include "launcher/job/local_agent_watch.hpp"

#include <optional>
#include <signal.h>
#include <utility>

#include <fmt/format.h>

#include "launcher/processes/process_handle.hpp"
#include "launcher/processes/process_tree.hpp"

namespace runjob {
namespace {

/// The agent and the two guards above it; empty when these are other processes by now.
std::vector<Process> agent_and_guards(pid_t agent) {
  std::vector<Process> found;
  for (const char* name : {"runjob-agent", "runjob-guard-2", "runjob-guard"}) {
    std::optional<Process> process = find_process(found.empty() ? agent : found.back().parent);
    if (!process || process->name != name) return {};
    found.push_back(*std::move(process));
  }
  return found;
}

/// The first of them that is stopped by a signal, and not by a debugger.
std::optional<Process> stopped_among(const std::vector<Process>& processes) {
  for (const Process& each : processes) {
    if (each.state == 'T') return each;
  }
  return std::nullopt;
}

}  // namespace

LocalAgentWatch::LocalAgentWatch(std::unique_ptr<Alarm> alarm, Events events)
    : alarm_(std::move(alarm)), events_(std::move(events)) {}

void LocalAgentWatch::start(pid_t agent) {
  for (const Process& each : agent_and_guards(agent)) processes_.push_back(each.pid);
  if (!processes_.empty()) wait();
}

void LocalAgentWatch::expect_end(std::chrono::milliseconds limit) {
  end_due_ = alarm_->now() + limit;
}

void LocalAgentWatch::stop() {
  processes_.clear();
  alarm_->cancel();
}

/// Counts checks and not time: this process may have been stopped itself.
void LocalAgentWatch::wait() {
  alarm_->set(alarm_->now() + kInterval, [this] { check(); });
}

void LocalAgentWatch::check() {
  std::vector<ProcessHandle> handles(processes_.begin(), processes_.end());
  std::vector<Process> found;
  for (const pid_t pid : processes_) {  // a guard that is stopped outlives its agent
    const std::optional<Process> process = find_process(pid);
    if (process && process->name.starts_with("runjob-")) found.push_back(*process);
  }
  const std::optional<Process> stopped = stopped_among(found);
  stopped_ = stopped ? stopped_ + 1 : 0;
  if (stopped_ > kMostStopped) {
    handles.front().signal(SIGKILL);  // then the guards end what it leaves
    for (const ProcessHandle& handle : handles) handle.signal(SIGCONT);
    stop();
    return events_.on_stopped(fmt::format("the process {} (pid {}) on this host has been stopped for {} s",
                                          stopped->name, stopped->pid, kMostStopped));
  }
  if (!stopped && alarm_->now() >= end_due_) {
    end_due_ = Alarm::TimePoint::max();
    events_.on_late(fmt::format(
        "the agent (pid {}) has not ended its ranks in time; it is not stopped, so runjob waits", processes_.front()));
  }
  wait();
}

}  // namespace runjob
