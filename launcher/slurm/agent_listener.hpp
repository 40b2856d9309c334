#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/sealed/sealed_channel.hpp"
#include "rendezvous/job_key.hpp"

namespace runjob {

/// Where agents that SLURM started connect to: listens on every address of this host, on a free port. Only who holds the
/// key gets beyond the handshake (sealed/noise_handshake.hpp); the others are refused without an answer, and the first ten
/// are logged.
/// Bounds   a connection has ten seconds to show that it is an agent; of those that have not, at most `strangers` are kept,
///          and a new one takes the place of the oldest.
/// Threads  the loop's one thread.
class AgentListener {
 public:
  /// Called once for each agent that has shown that it holds the key, and is there.
  using OnAgent = std::function<void(std::string node, std::unique_ptr<Channel> channel)>;

  /// Errors  Error(kSystem).
  AgentListener(boost::asio::any_io_executor executor, const rendezvous::JobKey& key, std::size_t strangers,
                OnAgent on_agent);
  ~AgentListener();
  AgentListener(const AgentListener&) = delete;
  AgentListener& operator=(const AgentListener&) = delete;

  int port() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // with its coroutines, which may outlive this object by a turn of the loop
};

}  // namespace runjob
