#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channel/channel.hpp"
#include "launcher/channel/remote_message.hpp"
#include "launcher/ssh/ssh_session.hpp"

namespace runjob {

/// A channel over an SSH connection: the standard input and output of a command that runs on a host.
/// Owner    of the connection, which ends with it; operations in flight keep what they need, and end with an error.
/// Errors   as Channel; end of the stream is the command's, so a connection that ends before it is an error.
class SshChannel : public Channel {
 public:
  /// Starts `command` on `session`, which is logged in.
  /// Errors  Error(kConnect) when the host refuses to; ConnectionEnded.
  static boost::asio::awaitable<std::unique_ptr<Channel>> open(std::unique_ptr<SshSession> session, std::string command,
                                                               RemoteMessage message);

  ~SshChannel() override;
  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override;
  boost::asio::awaitable<void> write(std::vector<boost::asio::const_buffer> buffers) override;
  void close() override;
  std::string last_message() const override;

 private:
  struct State;
  explicit SshChannel(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // shared with the operations in flight
};

}  // namespace runjob
