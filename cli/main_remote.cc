#include <memory>
#include <sys/prctl.h>
#include <utility>

#include "base/log.hpp"
#include "cli/command.hpp"
#include "launcher/host_sources/discover_first_hosts.hpp"
#include "launcher/job/run_job.hpp"
#include "launcher/remote/agent_connector.hpp"
#include "launcher/remote/clean_cache.hpp"
#include "launcher/slurm/slurm_connector.hpp"
#include "launcher/srun_task/run_task.hpp"

namespace {

std::unique_ptr<runjob::HostConnector> connect_hosts(boost::asio::any_io_executor executor,
                                                     const runjob::JobSpec& job) {
  if (job.slurm) return std::make_unique<runjob::SlurmConnector>(std::move(executor), job);
  return std::make_unique<runjob::AgentConnector>(std::move(executor), job.ssh, job.environment);
}

}  // namespace

/// runjob-remote: what runjob becomes for a job with other hosts.
int main(int argc, char** argv) {
  using namespace runjob;
  ::prctl(PR_SET_NAME, "runjob");  // what users look for in `ps`
  const auto always = [](const JobSpec&) { return true; };
  const auto run = [](const JobSpec& spec) { return spec.slurm_task ? run_task(spec) : run_job(spec, connect_hosts); };
  const auto warn = [](const std::string& line) { log::warn("{}", line); };
  const auto discover = [warn](const FirstHosts& wanted, const Environment& environment) {
    return discover_first_hosts(wanted, environment, warn);
  };
  return run_command(argc, argv, {always, "", run, clean_cache, discover});
}
