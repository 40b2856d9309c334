#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/job/host_connector.hpp"
#include "launcher/job_spec/job_spec.hpp"
#include "launcher/sealed_channel/agent_listener.hpp"
#include "launcher/slurm/srun_program.hpp"

namespace runjob {

/// Connects a job to agents on the nodes of the SLURM allocation in which runjob runs. One srun starts all of them.
/// Each agent connects back to this process, which is the only case in which runjob listens on a port. The connections
/// are sealed with a key that only the agents get, through srun's standard input.
/// Owner    outlives the coroutines of open(), not the channels.
/// Threads  the loop's one thread.
class SlurmConnector : public HostConnector {
 public:
  /// `spec`, which has a SLURM job, outlives this object. Nothing is started before the first host.
  SlurmConnector(boost::asio::any_io_executor executor, const JobSpec& spec);
  ~SlurmConnector() override;

  /// The channel to the agent on that node. SLURM starts all agents at the first call.
  /// Errors  Error with srun's message about the node.
  boost::asio::awaitable<ReadyChannel> open(const Host& host, RemoteMessage on_message) override;

  /// srun's line about the node. Such a line is a warning of its own only if no agent's end is explained with it.
  std::string refusal(const Host& host) const override;
  void explain_end(const Host& host, std::function<void(const std::string& reason)> explained) override;

  void finish() override;

 private:
  struct Node {
    std::unique_ptr<boost::asio::steady_timer> news;  // cancelled when there is a channel or a failure
    std::unique_ptr<Channel> channel;                 // set once its agent is connected
    std::string failure;                              // the reason why there will be no agent
    bool served = false;                              // open() has returned the channel
    bool explained = false;                           // explain_end() has been called
    std::string end;                                  // srun's line about its end, unless it came after that
  };

  void start();
  void on_agent(const std::string& name, const std::string& peer, std::unique_ptr<Channel> channel);
  void on_line(const std::string& line);
  bool keep_for_explanation(const std::string& line);
  void on_end(const std::string& how);
  void fail(Node& node, const std::string& why);
  boost::asio::awaitable<void> wait_for_news(Node& node);

  boost::asio::any_io_executor executor_;
  const JobSpec& spec_;
  const std::string agent_;            // path of runjob-agent
  std::map<std::string, Node> nodes_;  // by name, which SLURM keeps unique
  std::vector<std::string> lines_;     // the last lines of srun
  std::vector<std::string> ended_;     // nodes whose agent has ended, until more lines have arrived
  boost::asio::steady_timer more_lines_;
  std::optional<AgentListener> listener_;
  std::optional<SrunProgram> srun_;
};

}  // namespace runjob
