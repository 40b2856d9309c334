#include "launcher/agent_connector.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/program_path.hpp"

namespace runjob {

namespace asio = boost::asio;

AgentConnector::AgentConnector(asio::any_io_executor executor, const SshOptions& options)
    : executor_(std::move(executor)), options_(options) {}

const AgentFile& AgentConnector::agent() {
  if (!agent_) agent_ = describe_agent(program_path("runjob-agent"));
  return *agent_;
}

asio::awaitable<std::unique_ptr<Channel>> AgentConnector::run(const Host& host, std::string command,
                                                              MessageHandler on_message) {
  co_return start_ssh_program(executor_, host, options_, command, std::move(on_message));
}

asio::awaitable<ReadyChannel> AgentConnector::open(const Host& host, MessageHandler on_message) {
  auto channel = co_await run(host, bootstrap_command(agent()), std::move(on_message));
  co_return co_await bootstrap_agent(std::move(channel), agent());
}

asio::awaitable<void> AgentConnector::clean(const Host& host) {
  const auto channel = co_await run(host, clean_cache_command(), {});
  std::string said;
  std::array<char, 4096> buffer;
  while (const std::size_t bytes = co_await channel->read_some(asio::buffer(buffer))) said.append(buffer.data(), bytes);
  if (said.ends_with(kCacheCleaned)) co_return;
  const std::string reason = channel->last_message();
  throw Error(Errc::kConnect, reason.empty() ? "the connection was closed before the cache was cleaned" : reason);
}

}  // namespace runjob
