#pragma once

#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/network/probe_messages.hpp"

namespace runjob {

/// Connects to addresses of other hosts, all at the same time, and collects the answers. When one address of a host has
/// answered after a time t, that host's other addresses get 4 t more, but at least 100 ms. A faster network answers
/// about as soon as a slow one, so that no time limit has to pass for an address that drops packets.
/// Threads  the executor's one thread.
class ProbeRound {
 public:
  using Done = std::function<void(const ProbeResults& results)>;

  /// `done` is called once, from the loop, within the message's time limit.
  ProbeRound(boost::asio::any_io_executor executor, const ProbeConnect& message, Done done);
  /// Closes all connections; `done` is not called any more.
  ~ProbeRound();
  ProbeRound(const ProbeRound&) = delete;
  ProbeRound& operator=(const ProbeRound&) = delete;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the coroutines, which may outlive this object by one turn of the loop
};

}  // namespace runjob
