#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/channel/bounded_listener.hpp"
#include "launcher/network/probe_messages.hpp"

namespace runjob {

/// Lets other hosts find out by which addresses they reach this one. Listens on each address, at a port that the kernel
/// chooses, and answers the token's question. Any other connection is closed without an answer.
/// Threads  the executor's one thread.
/// Bounds   those of BoundedListener: `most_connections` at a time, and 30 s in all.
class ProbeListener {
 public:
  /// All other hosts may connect to the first host at the same time.
  static constexpr std::size_t kMostConnections = 2048;

  ProbeListener(boost::asio::any_io_executor executor, const ProbeListen& message,
                std::size_t most_connections = kMostConnections);
  /// Closes the listeners and all connections.
  ~ProbeListener();
  ProbeListener(const ProbeListener&) = delete;
  ProbeListener& operator=(const ProbeListener&) = delete;

  /// For each of the message's addresses the port, or the reason why there is none.
  const ProbeListening& listening() const { return listening_; }

 private:
  ProbePort listen(boost::asio::any_io_executor executor, const boost::asio::ip::address& address);

  std::shared_ptr<BoundedListener> listener_;  // shared with the handler of end_
  boost::asio::steady_timer end_;
  ProbeListening listening_;
};

}  // namespace runjob
