#pragma once

#include <functional>
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
#include "launcher/processes/rank_environment.hpp"

namespace runjob {

/// Starts the ranks of a job: finds an address of each host, where the job needs them, then sends every agent its
/// launch message.
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

  /// Starts a new process of an elastic job.
  void start(const Membership::Start& start, int generation);

  /// The interface by which the others reach each host; that of loopback for a job on one host.
  std::vector<std::string> interfaces() const;

 private:
  JobVariables variables(int generation) const;
  int master_port() const;

  const boost::asio::any_io_executor executor_;
  const JobSpec& spec_;
  HostAgents& agents_;
  const std::string id_;
  const std::string topology_;  // what every rank learns about the whole job
  std::optional<NetworkProbe> probe_;
  std::vector<HostAddress> addresses_ = {loopback_address()};  // by host
};

}  // namespace runjob
