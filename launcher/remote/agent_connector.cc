#include "launcher/remote/agent_connector.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/program_path.hpp"
#include "launcher/channel/with_timeout.hpp"
#include "launcher/job/channel_local.hpp"
#include "launcher/remote/agent_file.hpp"
#include "launcher/remote/bootstrap.hpp"
#include "launcher/remote/channel_ssh_program.hpp"
#include "launcher/ssh/files/local_account.hpp"
#include "launcher/ssh/files/ssh_config_files.hpp"
#include "launcher/ssh/ssh_connector.hpp"
#include "launcher/ssh/ssh_program_needed.hpp"
#include "launcher/ssh/this_host.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

Error no_answer(std::chrono::milliseconds limit) {
  return {Errc::kConnect,
          fmt::format("no answer within {:g} s; is it up, and does a firewall let SSH through? (--connect-timeout)",
                      std::chrono::duration<double>(limit).count())};
}

}  // namespace

struct AgentConnector::Ssh {
  Ssh(const asio::any_io_executor& executor, const SshOptions& options, const Environment& environment)
      : agent(describe_agent(program_path("runjob-agent"))),
        account(local_account()),
        config(read_ssh_config({account.home + "/.ssh/config", account.home})),
        agent_socket(std::string(value_of(environment, "SSH_AUTH_SOCK"))),
        connector(executor, options) {}

  const AgentFile agent;
  const LocalAccount account;
  const std::vector<std::vector<SshDirective>> config;
  const std::string agent_socket;  // of ssh-agent
  SshConnector connector;
};

AgentConnector::AgentConnector(asio::any_io_executor executor, const SshOptions& options,
                               const Environment& environment)
    : executor_(std::move(executor)),
      options_(options),
      environment_(environment),
      programs_(executor_, options.concurrency) {}

AgentConnector::~AgentConnector() = default;

AgentConnector::Ssh& AgentConnector::ssh() {
  if (!ssh_) ssh_ = std::make_unique<Ssh>(executor_, options_, environment_);
  return *ssh_;
}

asio::awaitable<AgentConnector::Command> AgentConnector::run(const Host& host, std::string command,
                                                             RemoteMessage on_message) {
  Command result;
  if (!options_.command) {
    SshTarget target = ssh_target(host, options_, ssh().config, ssh().account, ssh().agent_socket);
    try {
      result.channel = co_await ssh().connector.open(std::move(target), command, on_message);
      co_return result;
    } catch (const SshProgramNeeded& reason) {
      log::info("{} is reached through the system's ssh: {}", host.name, reason.what());
    } catch (const ThisHost& address) {
      log::info("{} is this host ({}) and needs no SSH", host.name, address.what());
      co_return result;
    }
  }
  HandshakeLimit::Permit place = co_await programs_.acquire();
  result.place.emplace(std::move(place));
  result.channel = start_ssh_program(executor_, host, options_, command, std::move(on_message));
  co_return result;
}

asio::awaitable<ReadyChannel> AgentConnector::open(const Host& host, RemoteMessage on_message) {
  const AgentFile& agent = ssh().agent;
  Command started = co_await run(host, bootstrap_command(agent, options_.connect_timeout), std::move(on_message));
  if (!started.channel) co_return ReadyChannel{start_local_agent(executor_), ""};
  auto bootstrap = bootstrap_agent(std::move(started.channel), agent);
  auto ready = co_await with_timeout(executor_, std::move(bootstrap), options_.connect_timeout);
  if (ready) co_return std::move(*ready);
  throw no_answer(options_.connect_timeout);
}

asio::awaitable<void> AgentConnector::clean(const Host& host) {
  Command started = co_await run(host, clean_cache_command(), {});
  if (!started.channel) co_return;  // no job has sent an agent here
  auto cleaned = cache_cleaned(std::move(started.channel));
  if (!co_await with_timeout(executor_, std::move(cleaned), options_.connect_timeout))
    throw no_answer(options_.connect_timeout);
}

}  // namespace runjob
