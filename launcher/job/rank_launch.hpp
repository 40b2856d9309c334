#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/status.hpp"
#include "launcher/elastic/membership.hpp"
#include "launcher/job/host_agents.hpp"
#include "launcher/job_spec/job_spec.hpp"
#include "launcher/network/network_probe.hpp"
#include "launcher/network/newcomer_probe.hpp"
#include "launcher/processes/rank_environment.hpp"

namespace runjob {

/// Starts the ranks of a job: finds an address of each host, where the job needs them, then sends every agent its
/// launch message. In an elastic job also takes in hosts that join it: their agents are reached and their addresses
/// tried when the first process is to start there.
/// Owner    the job. Outlives the loop's run.
/// Threads  the loop's one thread.
class RankLaunch {
 public:
  /// The references outlive this object. Errors  Error(kSystem) when the kernel gives no random bytes.
  RankLaunch(boost::asio::any_io_executor executor, const JobSpec& spec, HostAgents& agents);

  /// A random name for the job, unique among jobs.
  const std::string& job_id() const { return id_; }

  /// True if the ranks cannot be launched before find_addresses() has succeeded. Otherwise nothing of any hello is
  /// needed, so that a short job on one host need not wait for it.
  bool needs_addresses() const;

  /// Requires that all agents are ready. Calls `done` once, from here or from the loop; see NetworkProbe for its
  /// errors.
  void find_addresses(std::function<void(const Status& status)> done);

  /// An answer to the probe. Errors  Error(kProtocol) when the agent was not asked.
  void on_probe_frame(int host, ToLauncher type, std::string_view payload);

  void launch();

  /// Starts a new process of an elastic job, when its host has joined.
  void start(const Membership::Start& start, int generation);
  /// Why no process can start on a host at present, whatever the host is like: see Membership::Actions. "" if one can.
  std::string obstacle(const Host& host) const;
  /// The agent of a host that is to join is ready. Returns false for any other host.
  bool take_in(int host);
  /// The host has no agent any more.
  void on_agent_gone(int host);
  /// Called from the loop when a host cannot join: the ranks would not reach each other.
  std::function<void(int host, const std::string& why)> on_not_joined;

  /// The interface by which the others reach each host; that of loopback for a job on one host.
  std::vector<std::string> interfaces() const;

 private:
  using Starts = std::vector<std::pair<Membership::Start, int>>;  // with their generations

  JobVariables variables(int generation) const;
  int master_port() const;
  bool may_get_hosts() const { return spec_.elastic && spec_.elastic->may_get_hosts(); }
  NewcomerProbe::Member member(int host, bool is_local) const;
  void probe_next();
  void on_newcomer(int host, const Status& status, const HostAddress& address);
  void send(const Membership::Start& start, int generation);

  const boost::asio::any_io_executor executor_;
  const JobSpec& spec_;
  HostAgents& agents_;
  const std::string id_;
  const std::string topology_;  // what every rank learns about the whole job
  std::optional<NetworkProbe> probe_;
  std::map<int, HostAddress> addresses_ = {{0, loopback_address()}};  // of the hosts that can start ranks
  std::string master_address_;
  int master_port_ = 0;
  std::map<int, Starts> waiting_;  // by host: for its agent, and for its address
  std::deque<int> to_probe_;       // hosts whose agents are ready
  std::vector<std::unique_ptr<NewcomerProbe>>
      newcomer_probes_;  // the last one may be at work; the loop knows the others
  int probed_ = -1;      // the host of the probe that is at work
};

}  // namespace runjob
