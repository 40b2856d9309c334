#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "base/environment.hpp"
#include "hostfile/allocation.hpp"
#include "launcher/channel/remote_message.hpp"
#include "launcher/job/host_connector.hpp"
#include "launcher/job_spec/ssh_options.hpp"
#include "launcher/ssh/handshake_limit.hpp"

namespace runjob {

/// Connects a job to agents on its other hosts, over SSH: with libssh2, or through the system's ssh if that is
/// requested or if libssh2 cannot connect. A name that leads to this host gets an agent here, without SSH.
/// Owner    outlives the coroutines of open() and clean(), not the channels.
/// Threads  the loop's one thread; any number of hosts at once.
class AgentConnector : public HostConnector {
 public:
  /// `options` and `environment` outlive this object. Nothing is read or created before the first host.
  AgentConnector(boost::asio::any_io_executor executor, const SshOptions& options, const Environment& environment);
  ~AgentConnector() override;

  boost::asio::awaitable<ReadyChannel> open(const Host& host, RemoteMessage on_message) override;

  /// Removes the agents of all versions that jobs have left on `host`.
  /// Errors   as open().
  boost::asio::awaitable<void> clean(const Host& host);

 private:
  struct Ssh;  // created only for a job with other hosts

  /// A command on a host; without a channel if that is this host. The system's ssh has started, but not connected yet:
  /// it keeps its place until then.
  struct Command {
    std::unique_ptr<Channel> channel;
    std::optional<HandshakeLimit::Permit> place;
  };

  boost::asio::awaitable<Command> run(const Host& host, std::string command, RemoteMessage on_message);
  Ssh& ssh();

  boost::asio::any_io_executor executor_;
  const SshOptions& options_;
  const Environment& environment_;
  std::unique_ptr<Ssh> ssh_;
  HandshakeLimit programs_;  // of the system's ssh
};

}  // namespace runjob
