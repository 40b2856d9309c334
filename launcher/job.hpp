#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/agent_session.hpp"
#include "launcher/call_relay.hpp"
#include "launcher/core_notices.hpp"
#include "launcher/host_connector.hpp"
#include "launcher/input_relay.hpp"
#include "launcher/job_spec.hpp"
#include "launcher/network/network_probe.hpp"
#include "launcher/output_relay.hpp"
#include "launcher/signal_forwarding.hpp"
#include "launcher/stack_traces.hpp"
#include "launcher/start_status.hpp"
#include "launcher/verdict.hpp"
#include "rendezvous/service.hpp"

namespace runjob {

/// One job while it runs: its agents, its rendezvous, its output, input and signals, and what becomes of it.
/// Threads  the one that calls run().
class Job : public AgentSession::Events {
 public:
  /// `local_agents`: for each of JobSpec::local_hosts our end of its agent's socket pair.
  Job(const JobSpec& spec, std::map<int, UniqueFd> local_agents, const MakeHostConnector& make_connector);
  ~Job() override;

  /// Returns when nothing of the job is left: the exit status. Errors  see run_job().
  int run();

 private:
  struct HostState {
    std::unique_ptr<AgentSession> session;
    std::optional<Hello> hello;
    bool finished = false;  // said so
    bool ended = false;     // its channel has, or never was

    bool starting() const { return !hello && !ended; }
  };

  void on_frame(int host, const FrameHeader& header, std::string_view payload) override;
  void on_batch_end(int host) override;
  void on_end(int host, const std::string& how) override;

  void reach_hosts(std::map<int, UniqueFd> local_agents);
  bool any_host_starting() const;
  void on_hello(int host, Hello hello);
  std::int64_t milliseconds_since_start() const;
  void find_addresses();
  void on_addresses(const Status& status, std::vector<HostAddress> addresses);
  void launch_ranks();
  int master_port() const;

  void on_rank_gone(int rank);
  void on_request(int host, RelayedRequest message);
  void watch_rendezvous();
  HostCores cores_of(int host) const;
  void on_first_join(rendezvous::Service::TimePoint joined);
  void watch_start(rendezvous::Service::TimePoint joined);
  void check_start();
  void watch_culprit();

  void wait_for_signal();
  SignalForwarding::Hooks signal_hooks();
  void when_sent(const std::function<void()>& done);
  void watch_time_limit(std::chrono::steady_clock::duration left);
  void on_signal(int number);
  void end_if_caused();
  void end_ranks(int signal, std::chrono::milliseconds grace);
  void show_status(const std::string& line, const std::string& what);
  void leave_if_done();
  void collect_stacks();
  void report_stacks();
  int conclude();

  std::string host_name(int host) const { return spec_.allocation.hosts.at(static_cast<std::size_t>(host)).name; }
  bool is_local(int host) const { return std::count(spec_.local_hosts.begin(), spec_.local_hosts.end(), host) != 0; }
  const HostAddress& address_of(int host) const { return addresses_.at(static_cast<std::size_t>(host)); }
  bool needs_addresses() const { return hosts_.size() > 1 || !spec_.network_interfaces.included.empty(); }
  int host_of(int rank) const { return spec_.allocation.placements.at(static_cast<std::size_t>(rank)).host; }
  AgentSession& session_of(int rank) { return *hosts_.at(static_cast<std::size_t>(host_of(rank))).session; }

  const JobSpec& spec_;
  const std::string id_;
  const std::string topology_;  // what every host's ranks are told of the whole job
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
  SignalForwarding forwarding_;
  Verdict verdict_;
  rendezvous::Service rendezvous_;
  boost::asio::steady_timer rendezvous_timer_;
  boost::asio::steady_timer start_timer_;
  boost::asio::steady_timer time_limit_timer_;
  boost::asio::steady_timer culprit_timer_;
  OutputRelay output_;
  InputRelay input_;
  StartStatus status_;
  std::string status_said_;            // the last one, without a terminal
  std::optional<StackTraces> stacks_;  // from when time is up, if asked for
  std::string stack_report_;
  std::unique_ptr<HostConnector> connector_;  // null when there are no other hosts
  std::vector<HostState> hosts_;
  std::optional<CallRelay> call_;
  std::optional<NetworkProbe> probe_;                          // from the last hello on, when addresses are needed
  std::vector<HostAddress> addresses_ = {loopback_address()};  // by host
  bool any_joined_ = false;
  bool culprit_awaited_ = false;
  bool ending_ = false;
  int interrupts_ = 0;
};

}  // namespace runjob
