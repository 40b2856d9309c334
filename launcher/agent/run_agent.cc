#include "launcher/agent/run_agent.hpp"

#include <exception>
#include <signal.h>

#include "base/log.hpp"
#include "base/standard_descriptors.hpp"
#include "launcher/agent/agent.hpp"
#include "launcher/agent/guard.hpp"

namespace runjob {

int run_agent(Neighbours neighbours) {
  open_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  log::configure(log::Level::kWarn, "agent: ");
  try {
    Agent agent(start_guard(), neighbours);
    agent.run();
    return 0;
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return 125;
  }
}

}  // namespace runjob
