#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "hostfile/allocation.hpp"
#include "launcher/channel/channel.hpp"
#include "launcher/channel/remote_message.hpp"
#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// A channel whose agent is running.
struct ReadyChannel {
  std::unique_ptr<Channel> channel;
  std::string received;  ///< the bytes that have been read already: the frames' magic, perhaps after noise
};

/// Reaches the hosts of a job except this one.
/// Owner    the job's HostAgents.
/// Threads  the loop's one thread; any number of hosts at the same time.
class HostConnector {
 public:
  virtual ~HostConnector() = default;

  /// Opens a channel to an agent of this build on `host`, which is lent until the call has ended. `on_message` receives
  /// the lines that arrive beside the channel, also later on.
  /// Errors  Error with the reason and the remedy.
  virtual boost::asio::awaitable<ReadyChannel> open(const Host& host, RemoteMessage on_message) = 0;

  /// Why open() cannot open another channel to `host`, as far as is known without trying; "" if it perhaps can.
  virtual std::string refusal(const Host&) const { return ""; }

  /// Calls `explained` with what the program that started the agent on `host` reports about its end, "" for nothing: at
  /// once, or from the loop within half a second. Call it when the channel has ended too early.
  virtual void explain_end(const Host&, std::function<void(const std::string& reason)> explained) { explained(""); }

  /// Waits for the programs that have started the agents, a few seconds at most. Call it when all agents have ended.
  /// Blocks.
  virtual void finish() {}
};

/// Makes the connector of a job, whose spec outlives it.
using MakeHostConnector =
    std::function<std::unique_ptr<HostConnector>(boost::asio::any_io_executor executor, const JobSpec& spec)>;

}  // namespace runjob
