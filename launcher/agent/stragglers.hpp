#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/agent/rank_processes.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// The processes of a job that have not ended after the signal to its ranks: busy ranks, and processes that ranks have
/// started in sessions or process groups of their own, which a signal to the rank's process group does not reach.
/// Owner    the agent. `ranks` outlives this object.
/// Threads  the loop's one thread.
class Stragglers {
 public:
  using Report = std::function<void(const Remaining& remaining)>;

  Stragglers(boost::asio::any_io_executor executor, const RankProcesses& ranks, Report report);

  /// Sends SIGTERM to every process below this one that is in no rank's process group; to each process only once. The
  /// processes of a runjob that a rank has started get it from their own agent.
  void terminate();
  /// Reports the processes that remain after kPatience, if there are any. `grace`: the time until they are killed.
  void watch(std::chrono::milliseconds grace);
  void stop() { timer_.cancel(); }

  /// Most jobs end within this time, and need no report.
  static constexpr std::chrono::milliseconds kPatience{2000};

 private:
  Remaining remaining(std::chrono::milliseconds left) const;

  const RankProcesses& ranks_;
  const Report report_;
  boost::asio::steady_timer timer_;
  std::set<pid_t> terminated_;
};

}  // namespace runjob
