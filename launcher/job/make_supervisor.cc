#include "launcher/job/make_supervisor.hpp"

#include <csignal>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "launcher/elastic/elastic_supervisor.hpp"
#include "launcher/host_sources/hostfile_source.hpp"
#include "launcher/host_sources/script_source.hpp"
#include "launcher/resize/resize_request.hpp"
#include "launcher/resize/resize_socket.hpp"
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
    output.add_process(agents.host(start.host).name);
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
  hooks.obstacle = [&launch](const Host& host) { return launch.obstacle(host); };
  hooks.add_host = [&agents](const Host& host) { agents.add_host(host); };
  hooks.leave = [&agents, &launch](int host) {
    launch.on_agent_gone(host);
    agents.send(host, ToAgent::kEnd, encode(End{}));  // it has no rank
  };
  return hooks;
}

std::vector<MakeHostSource> host_sources(const boost::asio::any_io_executor& executor, const JobSpec& spec,
                                         const RankLaunch& launch) {
  const ElasticSettings& settings = *spec.elastic;
  std::vector<MakeHostSource> sources;
  if (!settings.discovery_script.empty()) {
    sources.push_back([executor, &spec, &settings](HostChanges& changes) {
      return std::make_unique<ScriptSource>(executor, settings.discovery_script, spec.environment,
                                            settings.slots_per_host, changes);
    });
  }
  if (!settings.hostfile.empty()) {
    sources.push_back([executor, &settings](HostChanges& changes) {
      return std::make_unique<HostfileSource>(executor, settings.hostfile, settings.hostfile_owner, changes);
    });
  }
  sources.push_back([executor, id = launch.job_id()](HostChanges& changes) {
    return std::make_unique<ResizeSocket>(executor, resize_folder(), id, changes);
  });
  return sources;
}

}  // namespace

std::unique_ptr<Supervisor> make_supervisor(const boost::asio::any_io_executor& executor, const JobSpec& spec,
                                            const StoppedTime& stopped, HostAgents& agents, RankLaunch& launch,
                                            OutputRelay& output, Supervisor::EndRanksBecause end_ranks) {
  RankSupervisor::Options options{spec.command.front(), spec.start_timeout, spec.continue_on_failure, {}};
  if (!spec.elastic) {
    return std::make_unique<RankSupervisor>(spec.allocation, std::move(options), make_alarm(executor, stopped),
                                            std::move(end_ranks));
  }
  return std::make_unique<ElasticSupervisor>(
      spec.allocation, *spec.elastic, std::move(options),
      [executor, &stopped] { return make_alarm(executor, stopped); }, std::move(end_ranks),
      elastic_hooks(executor, spec, agents, launch, output), host_sources(executor, spec, launch));
}

}  // namespace runjob
