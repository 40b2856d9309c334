#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "hostfile/allocation.hpp"
#include "launcher/frame.hpp"
#include "launcher/messages.hpp"

namespace runjob {

/// Collects where the ranks of a job are, before it is ended: native stacks through the agents, of all ranks before any of
/// them is disturbed; then the programs that print their own on SIGABRT do so, to their standard error, and end. Threads
/// the loop's one thread.
class StackTraces {
 public:
  struct Hooks {
    std::function<void(FrameType type)> send;  ///< to all agents, without a payload
    std::function<void()> before_python;       ///< stacks on standard error are about to come
    std::function<void()> done;                ///< the job may be ended; from the loop
  };

  StackTraces(boost::asio::any_io_executor executor, Hooks hooks);

  /// `ranks`: those that run. To be called once.
  void start(const std::vector<int>& ranks);

  void on_trace(int rank, StackTrace trace);
  void on_rank_gone(int rank);
  /// Some ranks are gone with their host: these are left.
  void wait_only_for(const std::vector<int>& ranks);

  /// What came of it, with each rank's standard error since before_python(), of which the stack is taken out: the rest goes
  /// back through `errors`. Called when all output has come.
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
