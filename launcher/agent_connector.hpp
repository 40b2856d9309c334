#pragma once

#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "hostfile/allocation.hpp"
#include "launcher/agent_file.hpp"
#include "launcher/bootstrap.hpp"
#include "launcher/channel_ssh_program.hpp"
#include "launcher/ssh/ssh_options.hpp"

namespace runjob {

/// Connects a job to agents on its other hosts, over SSH. Threads  the loop's one thread.
class AgentConnector {
 public:
  /// `options` outlives this object.
  AgentConnector(boost::asio::any_io_executor executor, const SshOptions& options);

  /// A channel to an agent of our build on `host`, which is lent until it is there.
  /// Errors  Error with the reason and the remedy.
  boost::asio::awaitable<ReadyChannel> open(const Host& host, MessageHandler on_message);

  /// Removes the agents of all versions that jobs have left on `host`.
  /// Errors  as open().
  boost::asio::awaitable<void> clean(const Host& host);

 private:
  boost::asio::awaitable<std::unique_ptr<Channel>> run(const Host& host, std::string command,
                                                       MessageHandler on_message);
  const AgentFile& agent();

  boost::asio::any_io_executor executor_;
  const SshOptions& options_;
  std::optional<AgentFile> agent_;  // once it is needed
};

}  // namespace runjob
