#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/sealed_channel/sealed_channel.hpp"
#include "rendezvous/job_key.hpp"

namespace runjob {

/// Accepts the connections of agents that a batch system started: listens on every address of this host, on a free
/// port. Only an agent that has the key completes the handshake (sealed/noise_handshake.hpp). The others are rejected
/// without an answer, and the first ten are logged.
/// Bounds   a connection must prove within ten seconds that it is an agent. At most `strangers` connections that have
///          not are kept, and a new one replaces the oldest.
/// Threads  the loop's one thread.
class AgentListener {
 public:
  /// Called once for each agent that has proved that it has the key and is live. `node`: as the agent gives it; the key
  /// does not prove it. `peer`: its address and port.
  using OnAgent = std::function<void(std::string node, std::string peer, std::unique_ptr<Channel> channel)>;

  /// Errors  Error(kSystem).
  AgentListener(boost::asio::any_io_executor executor, const rendezvous::JobKey& key, std::size_t strangers,
                OnAgent on_agent);
  ~AgentListener();
  AgentListener(const AgentListener&) = delete;
  AgentListener& operator=(const AgentListener&) = delete;

  int port() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with its coroutines, which may outlive this object by one turn of the loop
};

}  // namespace runjob
