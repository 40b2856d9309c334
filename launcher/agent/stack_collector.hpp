#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "base/environment.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob {

/// Collects the stacks of this host's ranks. It runs eu-stack or gdb on each rank's program, as many at a time as there
/// are cores, for 2.5 s in all: the user waits for the end of the job, and a program under gdb stands still. Then it
/// makes the programs that can (Python's faulthandler) print their own stack, which ends them.
/// Owner    its owner keeps it until the loop's run has ended.
/// Threads  the loop's one thread.
class StackCollector {
 public:
  using Report = std::function<void(int process, StackTrace trace)>;

  StackCollector(boost::asio::any_io_executor executor, Report report);

  /// Reports each of the `running` processes (number and id) once, also one that has ended. Must be called only once.
  /// `environment` is that of the tools, which are searched in its PATH.
  void collect(const std::vector<std::pair<int, pid_t>>& running, Environment environment);

  /// To be called when the tools have ended, or their time is over.
  void dump_python();

 private:
  boost::asio::awaitable<void> work();
  boost::asio::awaitable<StackTrace> trace(pid_t leader);
  struct Output {
    std::string text;         ///< what the tool wrote
    std::string error;        ///< why there is none
    bool is_cut_off = false;  ///< its time was over
  };
  boost::asio::awaitable<Output> output_of(std::vector<std::string> command);
  std::vector<std::string> tool_for(pid_t pid) const;

  boost::asio::any_io_executor executor_;
  Report report_;
  Environment environment_;
  std::chrono::steady_clock::time_point deadline_;
  std::deque<std::pair<int, pid_t>> waiting_;
  std::set<pid_t> python_;  // leaders of the sessions whose program prints its own stack
};

}  // namespace runjob
