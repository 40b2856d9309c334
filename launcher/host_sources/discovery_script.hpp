#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "base/environment.hpp"

namespace runjob {

/// Runs a host discovery script, a command line for the shell, again and again: one second after it has ended. Its
/// whole output is one list. A script that goes on after an empty line, for as long as a second, is followed from then
/// on: in its output an empty line ends each list.
/// Threads  the executor's one thread.
class DiscoveryScript {
 public:
  struct Events {
    std::function<void(const std::string& list)> on_list;
    /// "exited with status 1: its last line on standard error"
    std::function<void(const std::string& why)> on_failure;
  };

  DiscoveryScript(boost::asio::any_io_executor executor, std::string command, Environment environment, Events events);
  /// As stop().
  ~DiscoveryScript();
  DiscoveryScript(const DiscoveryScript&) = delete;
  DiscoveryScript& operator=(const DiscoveryScript&) = delete;

  void start();
  /// Kills the script and what it has started in its session. No event comes any more.
  void stop();

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the handlers, which may outlive this object by one turn of the loop
};

}  // namespace runjob
