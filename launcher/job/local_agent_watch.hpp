#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "launcher/channel/alarm.hpp"

namespace runjob {

/// Notices that the agent on this host, or one of its guards, has been stopped (SIGSTOP): its channel does not end
/// then, and nothing that is sent on it has an effect. It checks the state of these processes in /proc each kInterval.
/// An agent that is only slow is waited for: it may be late by any time on a busy host.
/// Owner    HostAgents.
/// Threads  the loop's one thread.
class LocalAgentWatch {
 public:
  struct Events {
    /// The agent or a guard was stopped, `why` says which one. The agent has been killed, and the guards go on.
    std::function<void(const std::string& why)> on_stopped;
    /// The agent has not ended in the time of expect_end(), and is not stopped: `what` says so.
    std::function<void(const std::string& what)> on_late;
  };

  static constexpr std::chrono::seconds kInterval{1};
  /// In so many checks in a row a process must be found stopped.
  static constexpr int kMostStopped = 5;

  LocalAgentWatch(std::unique_ptr<Alarm> alarm, Events events);

  /// Begins to watch, unless `agent` is no agent below two guards.
  void start(pid_t agent);
  /// The agent has been asked to end its ranks, and has `limit` for it.
  void expect_end(std::chrono::milliseconds limit);
  /// The agent has ended.
  void stop();

 private:
  void check();
  void wait();

  std::unique_ptr<Alarm> alarm_;
  const Events events_;
  std::vector<pid_t> processes_;  // agent, inner guard, outer guard; empty unless they are watched
  int stopped_ = 0;               // checks in a row
  Alarm::TimePoint end_due_ = Alarm::TimePoint::max();
};

}  // namespace runjob
