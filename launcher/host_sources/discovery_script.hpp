#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "base/environment.hpp"

namespace runjob {

/// Runs a host discovery script, a command line for the shell, again and again: one second after each end. The output
/// of a run is one list. A script may also run on and print lists that end with an empty line: it is taken for such a
/// script when it has printed an empty line, and then neither prints nor ends for a second. The newest whole list
/// counts then, and each one that follows.
/// Owner    the script's process, in a session of its own; it does not outlive the launcher.
/// Threads  the executor's one thread, on which the events are called.
/// Errors   Events::on_failure, after which the script is run again; nothing is thrown.
class DiscoveryScript {
 public:
  struct Events {
    /// A list, as the script has printed it.
    std::function<void(const std::string& list)> on_list;
    /// A run has failed, so that its output does not count: "exited with status 1: its last line on standard error".
    std::function<void(const std::string& why)> on_failure;
  };

  DiscoveryScript(boost::asio::any_io_executor executor, std::string command, Environment environment, Events events);
  /// As stop().
  ~DiscoveryScript();
  DiscoveryScript(const DiscoveryScript&) = delete;
  DiscoveryScript& operator=(const DiscoveryScript&) = delete;

  void start();
  /// Kills the script with its process group. No event comes any more.
  void stop();

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the handlers, which may outlive this object by one turn of the loop
};

}  // namespace runjob
