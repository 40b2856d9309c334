#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "launcher/ssh/files/agent_answer.hpp"

namespace runjob {

/// A connection to ssh-agent, speaking its protocol (draft-miller-ssh-agent, sections 4.4 and 4.5). libssh2 has a
/// client of it too, which blocks: an agent may ask its user before it signs, and the other hosts must not wait for
/// that.
/// Threads  the loop's one thread; one request at a time.
/// Errors   none are thrown: an agent that is not there has no keys, one that fails does not sign.
class KeyAgent {
 public:
  explicit KeyAgent(boost::asio::any_io_executor executor) : socket_(executor) {}

  /// Connects to the agent at `path`, and asks for its keys. Call first.
  boost::asio::awaitable<std::vector<AgentKey>> keys(std::string path);

  /// The signature of `data` by `key`: the bytes that its algorithm makes, without that algorithm's name. `flags`
  /// choose the hash for RSA: see agent_flags(). Nothing when the agent, or its user, refused.
  boost::asio::awaitable<std::optional<std::string>> sign(PublicKey key, std::string data, std::uint32_t flags);

 private:
  boost::asio::awaitable<std::string> ask(std::string request);

  boost::asio::local::stream_protocol::socket socket_;
};

}  // namespace runjob
