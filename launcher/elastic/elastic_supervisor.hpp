#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/channel/alarm.hpp"
#include "launcher/elastic/generation.hpp"
#include "launcher/elastic/host_changes.hpp"
#include "launcher/elastic/host_source.hpp"
#include "launcher/elastic/membership.hpp"
#include "launcher/job_spec/elastic_settings.hpp"
#include "launcher/supervision/generation_record.hpp"
#include "launcher/supervision/rank_supervisor.hpp"
#include "launcher/supervision/supervisor.hpp"

namespace runjob {

/// Supervises the processes of an elastic job: each generation has a RankSupervisor of its own, and Membership decides
/// on the next one. The losses that the job survives do not reach the verdict, which is the last generation's.
/// Owner    the job. Outlives the loop's run. The processes belong to the owner, as for every Supervisor.
/// Threads  one, which also runs the alarms.
/// Errors   as Supervisor. Warnings about hosts and generations are logged.
class ElasticSupervisor : public Supervisor {
 public:
  /// The owner's side. Called from the loop.
  struct Hooks {
    /// Starts a process; started() or not_started() follows.
    std::function<void(const Membership::Start& start)> start;
    /// Sends the notice to all hosts.
    std::function<void(const rendezvous::Notice& notice)> notify;
    /// Ends a process; exited() follows.
    std::function<void(int process)> end;
    /// A generation has been formed. Its members get their ranks after this call.
    std::function<void(const Membership::Generation& generation)> formed;
    /// Why no process can start on a host at present: see Membership::Actions. The job may not have the host yet.
    std::function<std::string(const Host& host)> obstacle;
    /// A host with the next free index may get processes from now on.
    std::function<void(const Host& host)> add_host;
    /// The host has left the job, and none of its processes is left there.
    std::function<void(int host)> leave;
  };
  using MakeAlarm = std::function<std::unique_ptr<Alarm>()>;

  /// `allocation` is that of generation 0. Its hosts and then ElasticSettings::more_hosts have the first indices.
  /// `sources` are made at once, start with the first process, and stop when the ranks are ended.
  ElasticSupervisor(const Allocation& allocation, const ElasticSettings& settings, RankSupervisor::Options options,
                    MakeAlarm make_alarm, EndRanksBecause end_ranks, Hooks hooks,
                    const std::vector<MakeHostSource>& sources = {});
  ~ElasticSupervisor() override;

  void started(int process, const Started& start) override;
  void not_started(int process, const StartFailed& failure) override;
  void exited(int process, const Exited& end) override;
  bool joined(int process) override;
  void entered(int process) override;
  void request(rendezvous::Request request, rendezvous::Reply reply) override;
  void host_lost(int host, const std::string& how) override;
  void host_not_joined(int host, const std::string& why) override;
  void end_if_caused() override;
  void ranks_are_ending() override;
  const Verdict& verdict() const override;
  Verdict& verdict() override;
  int host_of(int process) const override;
  int process_of(int rank) const override;

 private:
  Membership::Actions actions();
  void form(const Membership::Generation& generation);
  void finish(const std::string& why);

  void on_ready(int process, const rendezvous::JoinRequest::Ready& ready, rendezvous::Reply reply);
  void on_failing(int process, const rendezvous::Failing& failing);
  std::unique_ptr<Generation> make_generation(const std::vector<Membership::Member>& members);
  void on_end(const Verdict& verdict);
  void watch_times();
  const std::string& name_of(int host) const { return changes_.hosts().at(static_cast<std::size_t>(host)).name; }

  const RankSupervisor::Options options_;
  const MakeAlarm make_alarm_;
  const EndRanksBecause end_ranks_because_;
  const Hooks hooks_;
  const std::unique_ptr<Alarm> alarm_;
  Membership membership_;
  HostChanges changes_;
  std::vector<GenerationRecord> history_;
  std::unique_ptr<Generation> generation_;  // the present one
  std::vector<std::unique_ptr<HostSource>> sources_;
  std::map<int, Started> processes_;          // those that run
  std::map<int, rendezvous::Reply> waiting_;  // the joins of processes that are ready
  bool begun_ = false;                        // the first process has been started
  bool ending_ = false;                       // the ranks are being ended
};

}  // namespace runjob
