#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/channel/alarm.hpp"
#include "launcher/job/call_relay.hpp"
#include "launcher/job/end_signals.hpp"
#include "launcher/job/host_agents.hpp"
#include "launcher/job/host_connector.hpp"
#include "launcher/job/input_relay.hpp"
#include "launcher/job/rank_launch.hpp"
#include "launcher/job/signal_forwarding.hpp"
#include "launcher/job_spec/job_spec.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/output/start_status.hpp"
#include "launcher/supervision/stack_traces.hpp"
#include "launcher/supervision/supervisor.hpp"

namespace runjob {

/// One job while it runs: connects its agents, the supervisor of its ranks, its output, input and signals.
/// Owner    run_job(). `spec` outlives it.
/// Threads  the one that calls run().
class Job : private HostAgents::Events {
 public:
  /// `local_agents`: for each of JobSpec::local_hosts our end of its agent's socket pair.
  /// Errors  see run_job().
  Job(const JobSpec& spec, std::map<int, UniqueFd> local_agents, const MakeHostConnector& make_connector);
  ~Job() override;

  /// Returns the exit status when nothing of the job is left. Errors  see run_job().
  int run();

 private:
  /// The stages of a job. A phase only changes to a later one, and phases may be left out.
  enum class Phase {
    kReaching,  // agents are being started
    kProbing,   // the hosts look for addresses by which they reach each other
    kRunning,   // the agents have been sent kLaunch
    kTracing,   // time is up, and the stacks of the ranks are being collected
    kEnding,    // the agents have been sent kEnd
    kLeaving,   // all agents have ended; output may still have to be written
  };

  void on_agent_ready(int host) override;
  void on_frame(int host, const FrameHeader<ToLauncher>& header, std::string_view payload) override;
  void on_batch_end() override;
  void on_agent_end(int host, HostAgents::AgentEnd end, const std::string& how) override;

  void enter(Phase next);
  void watch_output();
  void on_addresses(const Status& status);
  void on_started(int process, const Started& report);
  void on_joined(int process);
  void on_exited(int process, const Exited& report);
  void on_request(int host, RelayedRequest message);
  bool is_foreign(int host, int process);
  void announce_threads();
  void end_if_caused();
  void end_because(const Verdict& verdict);
  void end_ranks(int signal, std::chrono::milliseconds grace);
  void interrupt(int signal, bool at_once);
  SignalForwarding::Hooks signal_hooks();
  void watch_time_limit(std::chrono::steady_clock::duration left);
  void collect_stacks();
  void report_stacks();
  void leave_if_done();
  int conclude();

  const JobSpec& spec_;
  const std::chrono::system_clock::time_point start_ = std::chrono::system_clock::now();
  Phase phase_ = Phase::kReaching;
  boost::asio::io_context context_;
  std::set<int> foreign_hosts_;  ///< that have sent a request in the name of another host's rank
  EndSignals end_signals_;
  SignalForwarding forwarding_;
  boost::asio::steady_timer time_limit_timer_;
  StoppedTime stopped_;
  OutputRelay output_;
  InputRelay input_;
  StartStatus status_;
  HostAgents agents_;
  RankLaunch launch_;
  const std::unique_ptr<Supervisor> supervisor_;
  std::optional<CallRelay> call_;
  std::optional<StackTraces> stacks_;  // from kTracing on
  std::string stack_report_;
  bool any_joined_ = false;               // some rank has called init()
  std::int64_t lost_input_ = 0;           // bytes that were taken for rank 0, which read none
  std::map<int, int> remaining_reports_;  // by host: how many have come
};

}  // namespace runjob
