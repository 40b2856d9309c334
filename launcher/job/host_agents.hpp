#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/unique_handle.hpp"
#include "launcher/job/agent_session.hpp"
#include "launcher/job/host_connector.hpp"
#include "launcher/job/local_agent_watch.hpp"
#include "launcher/job_spec/job_spec.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/supervision/core_notices.hpp"

namespace runjob {

/// The agents of a job, one on each host: reaches them, checks the origin of their frames, and knows how far each host
/// is. The ranks' output goes from here straight to its relay; the other frames go to the job.
/// Owner    the job. Outlives the loop's run.
/// Threads  the loop's one thread.
class HostAgents : private AgentSession::Events {
 public:
  /// How an agent's channel ended.
  enum class AgentEnd {
    kNotReached,  ///< before the agent was ready
    kNotJoined,   ///< the same, of a host that was to join a running job
    kFinished,    ///< nothing of the job is left on the host
    kLost,        ///< while the agent had work
    kStoodStill,  ///< the same, as this process was silent for so long that the agent gave it up
  };

  /// The job's side. Called from the loop.
  class Events {
   public:
    virtual ~Events() = default;
    /// hello() of this host is known from now on.
    virtual void on_agent_ready(int host) = 0;
    /// `header.process` is a process of this host, or -1 in a frame that is about none. Each process starts once, and
    /// ends once after it has started. Never kHello, kOutput, kFinished, kFailed or kHeartbeat.
    /// Errors  Error(kProtocol) ends the agent's channel.
    virtual void on_frame(int host, const FrameHeader<ToLauncher>& header, std::string_view payload) = 0;
    /// The frames that arrived together have been handled, and their output has been written.
    virtual void on_batch_end() = 0;
    /// `how`: the reason as far as it is known.
    virtual void on_agent_end(int host, AgentEnd end, const std::string& how) = 0;
  };

  /// The references outlive this object.
  HostAgents(boost::asio::io_context& context, const JobSpec& spec, OutputRelay& output, Events& events);

  /// Begins to reach the agents of the allocation's hosts; frames that are sent before one is ready wait for it.
  /// `local_agents`: for each of JobSpec::local_hosts our end of its agent's socket pair. `make_connector`: for the
  /// other hosts, if there are any.
  void reach(std::map<int, UniqueFd> local_agents, const MakeHostConnector& make_connector);

  /// A host of an elastic job has the next free index from now on. Nothing is done there before connect().
  void add_host(Host host);
  /// Begins to reach the agent of a host that has none, or has none any more. One that is leaving is waited for. Has no
  /// effect after end_ranks().
  void connect(int host);

  /// Why no agent can be started on a host now, whatever the host is like; "" if one can. The job need not have it.
  std::string refusal(const Host& host) const;

  int host_of(int process) const { return processes_.at(static_cast<std::size_t>(process)).host; }
  /// From now on there is a process with the next free number on this host.
  void add_process(int host) { processes_.push_back({host}); }
  /// `process`: the one of this host that the frame is for; -1 for none.
  void send(int host, ToAgent type, std::string payload, int process = -1);
  /// Sends to every agent whose channel has not ended.
  void send_to_all(ToAgent type, const std::string& payload);
  void send_output_credit(int process, Stream stream, std::int64_t bytes);
  void send_input(int process, const std::string& bytes);
  /// Sends the signal to all ranks. Between SIGSTOP and SIGCONT the silence of either side is no failure.
  void signal_ranks(int number);
  /// Has all agents end their ranks, and gives up those on other hosts that are not ready.
  void end_ranks(const End& message);
  /// Calls `done` from the loop when every frame sent so far has left this process; never if a channel breaks before.
  void when_sent(const std::function<void()>& done);
  /// Waits for the programs that have started the agents, a few seconds at most. Call it after the loop. Blocks.
  void finish();

  bool any_starting() const;
  bool all_ended() const;
  /// Requires that the agent is ready.
  const Hello& hello(int host) const { return *hosts_.at(host).hello; }
  HostCores cores_of(int host) const;
  const Host& host(int index) const { return hosts_.at(index).host; }
  std::int64_t milliseconds_since_start() const;

 private:
  /// As far as its host has reported.
  struct Process {
    enum class Phase { kAwaited, kRunning, kEnded };
    int host = 0;
    Phase phase = Phase::kAwaited;
  };
  struct HostState {
    Host host;
    bool is_local = false;
    bool joins = false;                      // while the job runs
    std::unique_ptr<AgentSession> session;   // null before connect()
    std::unique_ptr<LocalAgentWatch> watch;  // of an agent on this host
    std::optional<Hello> hello;
    bool again = false;     // connect() was called while the last agent was leaving
    bool finished = false;  // the agent has announced it
    bool ended = false;     // there is no channel any more, or there never was one

    bool starting() const { return !hello && !ended; }
    bool is_reached() const { return session && !ended; }
  };

  void on_frame(int host, const FrameHeader<ToLauncher>& header, std::string_view payload) override;
  void on_batch_end(int host) override;
  void on_end(int host, const std::string& how) override;
  void end(int host, const std::string& how);
  void check_process(int host, const FrameHeader<ToLauncher>& header) const;
  void follow(ToLauncher type, int process);
  void on_hello(int host, Hello hello);
  void on_finished(int host);
  void open_session(int host, std::unique_ptr<Channel> local);

  boost::asio::io_context& context_;
  const JobSpec& spec_;
  OutputRelay& output_;
  Events& events_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::unique_ptr<HostConnector> connector_;  // null when there are no other hosts
  std::map<int, HostState> hosts_;
  std::vector<std::unique_ptr<AgentSession>> old_sessions_;  // of hosts that came back; the loop may still know them
  std::vector<Process> processes_;                           // by number, which is the rank in a job of fixed size
  bool ending_ = false;                                      // end_ranks() has been called
};

}  // namespace runjob
