#include "launcher/agent/run_agent.hpp"

#include <exception>
#include <memory>
#include <signal.h>
#include <unistd.h>
#include <utility>

#include "base/descriptors.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "launcher/agent/agent.hpp"
#include "launcher/agent/connect_back.hpp"
#include "launcher/agent/guard.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "launcher/sealed_channel/sealed_channel.hpp"

namespace runjob {

namespace {

std::unique_ptr<Channel> standard_channel(boost::asio::any_io_executor executor) {
  return std::make_unique<FdChannel>(std::move(executor), UniqueFd(STDIN_FILENO), UniqueFd(STDOUT_FILENO));
}

template <class Run>
int with_errors_reported(Run run) {
  open_standard_descriptors();
  // SLURM gives the signals that are meant for the ranks to every process of a step.
  for (const int number : {SIGPIPE, SIGUSR1, SIGUSR2, SIGHUP, SIGINT, SIGQUIT, SIGALRM}) ::signal(number, SIG_IGN);
  log::configure(log::Level::kWarn, "agent: ");
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return 125;
  }
}

}  // namespace

int run_agent(Neighbours neighbours) {
  return with_errors_reported([neighbours] {
    Agent agent(start_guard(), neighbours, Agent::Starter::kLauncher, standard_channel);
    agent.run();
  });
}

int run_called_agent() {
  return with_errors_reported([] {
    const SealKeys keys = connect_back(current_environment());
    const auto sealed = [&keys](boost::asio::any_io_executor executor) {
      return std::make_unique<SealedChannel>(standard_channel(std::move(executor)), keys);
    };
    Agent agent(start_guard(), Neighbours::kSome, Agent::Starter::kBatchSystem, sealed);
    agent.run();
  });
}

}  // namespace runjob
