#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "hostfile/allocation.hpp"
#include "launcher/channel.hpp"
#include "launcher/job_spec.hpp"
#include "launcher/remote_message.hpp"

namespace runjob {

/// A channel whose agent runs.
struct ReadyChannel {
  std::unique_ptr<Channel> channel;
  std::string received;  ///< what has been read of it already: the frames' magic, perhaps after noise
};

/// Reaches the hosts of a job that are not this one. Threads  the loop's one thread; any number of hosts at once.
class HostConnector {
 public:
  virtual ~HostConnector() = default;

  /// A channel to an agent of our build on `host`, which is lent until it is there. `on_message` gets what comes beside the
  /// channel, from then on too.
  /// Errors  Error with the reason and the remedy.
  virtual boost::asio::awaitable<ReadyChannel> open(const Host& host, RemoteMessage on_message) = 0;

  /// For when all agents have ended: waits for what has started them, a few seconds at most. Blocks.
  virtual void finish() {}
};

/// Makes the connector of a job, whose spec outlives it.
using MakeHostConnector =
    std::function<std::unique_ptr<HostConnector>(boost::asio::any_io_executor executor, const JobSpec& spec)>;

}  // namespace runjob
