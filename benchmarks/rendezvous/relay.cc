#include "benchmarks/rendezvous/relay.hpp"

#include <memory>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "base/environment.hpp"
#include "benchmarks/rendezvous/simulated_agent.hpp"
#include "hostfile/parse_hosts.hpp"
#include "launcher/job/job.hpp"

namespace runjob::benchmark {
namespace {

[[noreturn]] void simulate_agents(std::vector<UniqueFd> sockets, Size size, Measurement& times) {
  boost::asio::io_context context(1);
  Progress progress(size);
  std::vector<std::unique_ptr<SimulatedAgent>> agents;
  for (UniqueFd& socket : sockets) {
    agents.push_back(std::make_unique<SimulatedAgent>(context, std::move(socket), size, progress));
    agents.back()->start();
  }
  context.run();
  require(progress.all_gathered(), "the job ended before all was done");
  times = progress.times();
  ::_exit(0);
}

JobSpec spec_of(Size size) {
  JobSpec spec;
  spec.allocation = allocate(parse_host_list(fmt::format("node[0001-{:04}]:{}", size.hosts, size.ranks_per_host)), {});
  for (int host = 0; host < size.hosts; ++host) spec.local_hosts.push_back(host);
  spec.command = {"simulated"};
  spec.environment = current_environment();
  spec.working_directory = "/";
  spec.start_timeout = std::chrono::seconds(60);
  return spec;
}

/// In a process of its own, so that its peak memory is its own too.
[[noreturn]] void run_head(Size size, Measurement& measurement) {
  std::map<int, UniqueFd> ours;
  std::vector<UniqueFd> theirs;
  for (int host = 0; host < size.hosts; ++host) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no socket pair; raise ulimit -n");
    ours.emplace(host, UniqueFd(ends[0]));
    theirs.emplace_back(ends[1]);
  }
  const JobSpec spec = spec_of(size);
  const pid_t agents = ::fork();
  require(agents >= 0, "no process");
  if (agents == 0) {
    ours.clear();
    simulate_agents(std::move(theirs), size, measurement);
  }
  theirs.clear();
  const double began = now_seconds();
  {
    Job job(spec, std::move(ours), {});
    require(job.run() == 0, "the job failed");
  }
  int status = 0;
  require(::waitpid(agents, &status, 0) == agents && status == 0, "the simulation failed");
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  for (double* time : {&measurement.joined, &measurement.barrier_passed, &measurement.gathered}) *time -= began;
  measurement.head_cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                                 1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  measurement.head_peak_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  ::_exit(0);
}

}  // namespace

Measurement measure_relay(Size size) {
  void* memory = ::mmap(nullptr, sizeof(Measurement), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "no memory");
  auto* measurement = new (memory) Measurement;
  const pid_t head = ::fork();
  require(head >= 0, "no process");
  if (head == 0) run_head(size, *measurement);
  int status = 0;
  require(::waitpid(head, &status, 0) == head && status == 0, "the head failed");
  const Measurement result = *measurement;
  ::munmap(memory, sizeof(Measurement));
  return result;
}

}  // namespace runjob::benchmark
