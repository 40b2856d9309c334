#include "launcher/remote/clean_cache.hpp"

#include <algorithm>
#include <signal.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/log.hpp"
#include "launcher/channel/exception_message.hpp"
#include "launcher/processes/child_process.hpp"
#include "launcher/remote/agent_connector.hpp"

namespace runjob {

int clean_cache(const JobSpec& spec) {
  constexpr int kFailed = 125;
  if (spec.slurm) {
    log::warn(
        "nothing to clean: runjob keeps nothing on the nodes of a SLURM allocation; name hosts with -H to clean them "
        "over SSH");
    return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  boost::asio::io_context context;
  AgentConnector connector(context.get_executor(), spec.ssh, spec.environment);
  int status = 0;
  for (std::size_t i = 0; i < spec.allocation.hosts.size(); ++i) {
    if (std::count(spec.local_hosts.begin(), spec.local_hosts.end(), static_cast<int>(i)) != 0) continue;
    const Host& host = spec.allocation.hosts[i];
    boost::asio::co_spawn(context, connector.clean(host), [&status, &host](const std::exception_ptr& error) {
      const auto message = exception_message(error);
      if (!message) return log::info("{}: the cache is clean", host.name);
      log::error("{}: {}", host.name, *message);
      status = kFailed;
    });
  }
  context.run();
  return status;
}

}  // namespace runjob
