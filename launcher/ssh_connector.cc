#include "launcher/ssh_connector.hpp"

#include <utility>

#include "base/program_path.hpp"

namespace runjob {

namespace asio = boost::asio;

SshConnector::SshConnector(asio::any_io_executor executor, const SshOptions& options)
    : executor_(std::move(executor)), options_(options) {}

const AgentFile& SshConnector::agent() {
  if (!agent_) agent_ = describe_agent(program_path("runjob-agent"));
  return *agent_;
}

asio::awaitable<ReadyChannel> SshConnector::open(const Host& host, MessageHandler on_message) {
  const std::string command = bootstrap_command(agent());
  auto channel = start_ssh_program(executor_, host, options_, command, std::move(on_message));
  co_return co_await bootstrap_agent(std::move(channel), agent());
}

}  // namespace runjob
