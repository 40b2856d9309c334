#include "launcher/job/make_supervisor.hpp"

#include <csignal>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "launcher/elastic/elastic_supervisor.hpp"
#include "launcher/supervision/rank_supervisor.hpp"

namespace runjob {
namespace {

/// SIGTERM, and SIGKILL after the grace period. The process may be stopped.
void end_process(const boost::asio::any_io_executor& executor, HostAgents& agents, int process,
                 std::chrono::milliseconds grace) {
  for (const int number : {SIGTERM, SIGCONT})
    agents.send(agents.host_of(process), ToAgent::kSignal, encode(Signal{number}), process);
  const auto timer = std::make_shared<boost::asio::steady_timer>(executor, grace);  // owner: its handler
  timer->async_wait([timer, &agents, process](boost::system::error_code error) {
    if (!error) agents.send(agents.host_of(process), ToAgent::kSignal, encode(Signal{SIGKILL}), process);
  });
}

/// The owner's side of an elastic job.
ElasticSupervisor::Hooks elastic_hooks(const boost::asio::any_io_executor& executor, const JobSpec& spec,
                                       HostAgents& agents, RankLaunch& launch, OutputRelay& output) {
  const auto generation = std::make_shared<int>(0);  // owners: the hooks
  ElasticSupervisor::Hooks hooks;
  hooks.start = [&agents, &launch, &output, generation](const Membership::Start& start) {
    agents.add_process(start.host);
    output.add_process(agents.name(start.host));
    launch.start(start, *generation);
  };
  hooks.notify = [&agents](const rendezvous::Notice& notice) {
    agents.send_to_all(ToAgent::kNotice, rendezvous::to_json(notice));
  };
  hooks.end = [executor, &agents, grace = spec.grace_period](int process) {
    end_process(executor, agents, process, grace);
  };
  hooks.formed = [&output, generation](const Membership::Generation& formed) {
    *generation = formed.number;
    for (std::size_t rank = 0; rank < formed.members.size(); ++rank)
      output.set_rank(formed.members[rank].process, static_cast<int>(rank));
  };
  return hooks;
}

}  // namespace

std::unique_ptr<Supervisor> make_supervisor(const boost::asio::any_io_executor& executor, const JobSpec& spec,
                                            HostAgents& agents, RankLaunch& launch, OutputRelay& output,
                                            Supervisor::EndRanksBecause end_ranks) {
  RankSupervisor::Options options{spec.command.front(), spec.start_timeout, spec.continue_on_failure, {}};
  if (!spec.elastic) {
    return std::make_unique<RankSupervisor>(spec.allocation, std::move(options), make_alarm(executor),
                                            std::move(end_ranks));
  }
  return std::make_unique<ElasticSupervisor>(
      spec.allocation, *spec.elastic, std::move(options), [executor] { return make_alarm(executor); },
      std::move(end_ranks), elastic_hooks(executor, spec, agents, launch, output));
}

}  // namespace runjob
