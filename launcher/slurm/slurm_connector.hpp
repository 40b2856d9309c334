#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/host_connector.hpp"
#include "launcher/job_spec.hpp"
#include "launcher/slurm/agent_listener.hpp"
#include "launcher/slurm/srun_program.hpp"

namespace runjob {

/// Connects a job to agents on the nodes of the SLURM allocation that we are in. One srun starts all of them; each connects
/// back to us, which is the one port that runjob ever listens on, and the connections are sealed with a key that only the
/// agents get, through srun's standard input.
/// Owner    outlives the coroutines of open(), not the channels.
/// Threads  the loop's one thread.
class SlurmConnector : public HostConnector {
 public:
  /// `spec`, which has a SLURM job, outlives this object. Nothing is started before the first host.
  SlurmConnector(boost::asio::any_io_executor executor, const JobSpec& spec);
  ~SlurmConnector() override;

  /// The channel to the agent on that node, which SLURM starts with all others at the first call.
  /// Errors  Error with what srun says about it.
  boost::asio::awaitable<ReadyChannel> open(const Host& host, RemoteMessage on_message) override;

  void finish() override;

 private:
  struct Node {
    std::unique_ptr<boost::asio::steady_timer> news;  // cancelled when there is a channel or a failure
    std::unique_ptr<Channel> channel;                 // once its agent is there
    std::string failure;                              // or why it will not be
    bool served = false;                              // open() has returned the channel
  };

  void start();
  void on_agent(const std::string& name, std::unique_ptr<Channel> channel);
  void on_line(const std::string& line);
  void on_end(const std::string& how);
  void fail(Node& node, const std::string& why);
  boost::asio::awaitable<void> wait_for_news(Node& node);

  boost::asio::any_io_executor executor_;
  const JobSpec& spec_;
  const std::string agent_;            // path of runjob-agent
  std::map<std::string, Node> nodes_;  // by name, which SLURM keeps unique
  std::vector<std::string> lines_;     // the last ones that srun has said
  std::vector<std::string> ended_;     // nodes whose agent has, until more lines have come
  boost::asio::steady_timer more_lines_;
  std::optional<AgentListener> listener_;
  std::optional<SrunProgram> srun_;
};

}  // namespace runjob
