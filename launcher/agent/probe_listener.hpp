#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/network/probe_messages.hpp"

namespace runjob {

/// Lets other hosts find out by which of its addresses this one is reached: listens on each, at a port that the kernel chooses, and
/// answers the token's question with its answer; anything else is cut off without a word.
/// Threads  the executor's one thread.
/// Bounds   `most_connections` at a time, 30 s in all.
class ProbeListener {
 public:
  /// The first host is tried by all others at the same time.
  static constexpr std::size_t kMostConnections = 2048;

  ProbeListener(boost::asio::any_io_executor executor, const ProbeListen& message,
                std::size_t most_connections = kMostConnections);
  /// Closes the listeners and all connections.
  ~ProbeListener();
  ProbeListener(const ProbeListener&) = delete;
  ProbeListener& operator=(const ProbeListener&) = delete;

  /// For each of the message's addresses the port, or why there is none.
  const ProbeListening& listening() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the coroutines, which may outlive this object by a turn of the loop
};

}  // namespace runjob
