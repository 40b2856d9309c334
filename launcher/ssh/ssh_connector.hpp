#pragma once

#include <memory>
#include <random>
#include <set>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "launcher/job_spec/ssh_options.hpp"
#include "launcher/ssh/channel_ssh.hpp"
#include "launcher/ssh/files/ssh_target.hpp"
#include "launcher/ssh/handshake_limit.hpp"
#include "launcher/ssh/host_key_check.hpp"
#include "launcher/ssh/key_choice.hpp"

namespace runjob {

/// Opens the SSH connections of a job.
/// Owner    outlives the coroutines of open(), not the channels that they return.
/// Threads  the loop's one thread; open() for many hosts at once.
class SshConnector {
 public:
  SshConnector(boost::asio::any_io_executor executor, const SshOptions& options);

  /// Connects, checks the host's key, logs in and starts `command`. Waits for its turn first; from then on
  /// options.connect_timeout is the limit. A host that hangs up before the login, as sshd does to some of many
  /// (MaxStartups), is tried up to five times. Cancelling the coroutine ends it.
  /// Errors  Error(kConnect) or Error(kAuth), one line that names the host and the remedy; SshProgramNeeded;
  ///         ThisHost, before anything else is done, for a target that may be this host and whose address is one of it.
  boost::asio::awaitable<std::unique_ptr<Channel>> open(SshTarget target, std::string command, RemoteMessage message);

 private:
  struct Attempt;
  boost::asio::awaitable<std::unique_ptr<Channel>> open_channel(Attempt& attempt);
  boost::asio::awaitable<void> resolve(Attempt& attempt);
  boost::asio::awaitable<KeyChoice> find_keys(Attempt& attempt);
  boost::asio::awaitable<std::unique_ptr<SshSession>> connect(Attempt& attempt);
  boost::asio::awaitable<std::unique_ptr<SshSession>> connect_once(Attempt& attempt);
  boost::asio::awaitable<void> shake_hands(Attempt& attempt, SshSession& session);

  boost::asio::any_io_executor executor_;
  SshOptions options_;
  HandshakeLimit limit_;
  HostKeyCheck host_keys_;
  std::minstd_rand random_;
  std::set<std::string> warned_;  // one warning for each key, not for each host
};

}  // namespace runjob
