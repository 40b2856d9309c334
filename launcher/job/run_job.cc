#include "launcher/job/run_job.hpp"

#include <map>
#include <signal.h>
#include <utility>

#include "base/descriptors.hpp"
#include "launcher/job/channel_local.hpp"
#include "launcher/job/job.hpp"
#include "launcher/processes/child_process.hpp"

namespace runjob {

int run_job(const JobSpec& spec, const MakeHostConnector& make_connector) {
  open_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();        // each host takes some of ours
  std::map<int, UniqueFd> agents;  // before the job's event loop exists
  const bool one_network =
      spec.allocation.hosts.size() == 1 && spec.network_interfaces.included.empty() && !spec.elastic;
  const Neighbours neighbours = one_network ? Neighbours::kNone : Neighbours::kSome;
  for (const int host : spec.local_hosts) agents.emplace(host, fork_local_agent(neighbours));
  Job job(spec, std::move(agents), make_connector);
  return job.run();
}

}  // namespace runjob
