#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/environment.hpp"

namespace runjob {

/// srun as a child of this process, with its input, its output and its end.
/// Threads  the loop's one thread, which it does not outlive.
class SrunProgram {
 public:
  struct Events {
    std::function<void(const std::string& line)> on_line;  ///< a line of its standard error or output
    std::function<void(const std::string& how)> on_end;    ///< "exited with status 1"; called after its last line
  };

  /// Starts `command` with `input` as its whole standard input.
  /// Errors  Error(kUnavailable) when it cannot be executed.
  SrunProgram(boost::asio::any_io_executor executor, const std::vector<std::string>& command,
              const Environment& environment, const std::string& input, Events events);
  /// Kills srun if it still runs.
  ~SrunProgram();
  SrunProgram(const SrunProgram&) = delete;
  SrunProgram& operator=(const SrunProgram&) = delete;

  /// Waits for its end, up to a few seconds; blocks. Must be called when the agents have ended: the step exists until
  /// srun has ended too, and the next step would have to wait.
  void finish();

 private:
  class State;
  std::shared_ptr<State> state_;  // with its coroutine
};

}  // namespace runjob
