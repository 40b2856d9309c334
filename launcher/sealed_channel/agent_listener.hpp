#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/channel/bounded_listener.hpp"
#include "launcher/sealed_channel/sealed_channel.hpp"
#include "rendezvous/job_key.hpp"

namespace runjob {

/// Accepts the connections of agents that a batch system started: listens on every address of this host, on a free
/// port. Only an agent that has the key completes the handshake (sealed/noise_handshake.hpp). The others are rejected
/// without an answer.
/// Bounds   those of BoundedListener: `strangers` connections that have not proved yet that they are agents, and ten
///          seconds for each proof.
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

  int port() const { return port_; }

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the coroutines that serve connections
  BoundedListener listener_;
  int port_ = 0;
};

}  // namespace runjob
