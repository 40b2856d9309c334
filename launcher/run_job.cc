#include "launcher/run_job.hpp"

#include <signal.h>
#include <utility>
#include <vector>

#include "base/standard_descriptors.hpp"
#include "launcher/channel_local.hpp"
#include "launcher/job.hpp"

namespace runjob {

int run_job(const JobSpec& spec) {
  open_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<UniqueFd> agents;  // before the job's event loop exists
  for (std::size_t i = 0; i < spec.allocation.hosts.size(); ++i) agents.push_back(fork_local_agent());
  Job job(spec, std::move(agents));
  return job.run();
}

}  // namespace runjob
