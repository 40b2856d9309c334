#pragma once

#include <optional>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "hostfile/allocation.hpp"
#include "launcher/agent_file.hpp"
#include "launcher/bootstrap.hpp"
#include "launcher/channel_ssh_program.hpp"
#include "launcher/ssh/ssh_options.hpp"

namespace runjob {

/// Connects a job to agents on its other hosts. Threads  the loop's one thread.
class SshConnector {
 public:
  SshConnector(boost::asio::any_io_executor executor, const SshOptions& options);

  /// A channel to an agent of our build on `host`, which is lent until it is there.
  /// Errors  Error with the reason and the remedy, without the host's name.
  boost::asio::awaitable<ReadyChannel> open(const Host& host, MessageHandler on_message);

 private:
  const AgentFile& agent();

  boost::asio::any_io_executor executor_;
  const SshOptions& options_;
  std::optional<AgentFile> agent_;  // once it is needed
};

}  // namespace runjob
