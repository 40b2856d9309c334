#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "hostfile/allocation.hpp"
#include "launcher/channel/frame.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// Collects the stacks of a job's ranks before the job is ended. First the agents take the native stacks of all ranks,
/// which disturbs none of them; then the programs that print their own stack on SIGABRT do so, to their standard error,
/// and end.
/// Threads  the loop's one thread.
class StackTraces {
 public:
  struct Hooks {
    std::function<void(ToAgent type)> send;  ///< sends a frame without a payload to all agents
    std::function<void()> before_python;     ///< called before the ranks write stacks to their standard error
    std::function<void()> done;              ///< called from the loop once the job may be ended
  };

  StackTraces(boost::asio::any_io_executor executor, Hooks hooks);

  /// `ranks`: those whose process runs. Call it once.
  void start(const std::vector<int>& ranks);

  void on_trace(int rank, StackTrace trace);
  void on_rank_gone(int rank);
  /// Some ranks were lost with their host; only `ranks` still run.
  void wait_only_for(const std::vector<int>& ranks);

  /// The stacks that were collected. `errors` has each rank's standard error since before_python(); the stacks are
  /// taken out of it. Call it when all output has arrived.
  using Errors = std::map<int, std::string>;
  std::string report(const Allocation& allocation, Errors& errors) const;

 private:
  enum class Phase { kIdle, kNative, kPython, kDone };

  void wait_for(Phase phase, std::set<int> ranks);
  void no_longer(int rank);
  void next_phase();

  Hooks hooks_;
  boost::asio::steady_timer limit_;
  Phase phase_ = Phase::kIdle;
  std::set<int> waiting_;  // ranks
  std::map<int, StackTrace> traces_;
};

}  // namespace runjob
