#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "launcher/channel/channel.hpp"
#include "launcher/channel/frame_writer.hpp"
#include "launcher/channel/heartbeat.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/job/host_connector.hpp"

namespace runjob {

/// The launcher's end of one agent's channel: opens it, reads the agent's frames, sends ours, and notices its end.
/// Owner    HostAgents. Outlives the loop's run.
/// Threads  the loop's one thread.
class AgentSession {
 public:
  /// The owner's side. Called from the loop; `host` is the index given to the constructor.
  class Events {
   public:
    virtual ~Events() = default;
    /// Every frame except kHeartbeat and kFailed.
    virtual void on_frame(int host, const FrameHeader<ToLauncher>& header, std::string_view payload) = 0;
    /// The frames that arrived together have been handled.
    virtual void on_batch_end(int host) = 0;
    /// The channel has ended, or could not be opened. If the agent has announced that it finished (kFinished), nothing
    /// of the job is left on the host. `how` is the reason as far as it is known.
    virtual void on_end(int host, const std::string& how) = 0;
  };

  /// Makes the channel to a running agent. Errors  Error with the reason.
  using Open = std::function<boost::asio::awaitable<ReadyChannel>()>;

  /// `context` and `events` outlive this object.
  AgentSession(boost::asio::io_context& context, int host, Events& events, std::unique_ptr<Alarm> heartbeat_alarm);

  /// Reads from a channel on this host, which cannot break unnoticed. The agent may still be starting. Call this or
  /// open(), once.
  void start(std::unique_ptr<Channel> channel);

  /// Opens a channel over a network, with heartbeats.
  void open(Open open);

  /// Gives the agent up: calls on_end() before it returns, unless that has been called.
  void abandon(const std::string& why);

  /// Frames that are sent before the channel is open wait for it.
  void send(ToAgent type, int process, std::string payload) { writer_.send_control(type, process, std::move(payload)); }
  void send_output_credit(int process, Stream stream, std::int64_t bytes);
  void send_input(int process, const std::string& bytes);

  /// Between these two calls the silence of either side is no failure: this process is about to be stopped.
  void pause_heartbeat();
  void resume_heartbeat();
  /// As Heartbeat's; 0 for an agent on this host.
  std::chrono::steady_clock::duration standstill() const { return heartbeat_.standstill(); }
  /// Calls `done` from the loop when every frame sent so far has left this process; never if the channel breaks before.
  void when_sent(std::function<void()> done) { writer_.when_idle(std::move(done)); }

 private:
  boost::asio::awaitable<void> run(Open open);
  boost::asio::awaitable<void> read_frames(std::string received);
  void end(const std::string& how);

  boost::asio::io_context& context_;
  int host_;
  std::unique_ptr<Channel> channel_;  // null while it is being opened
  Events& events_;
  FrameWriter<ToAgent> writer_;
  FrameParser<ToLauncher> parser_;
  Heartbeat heartbeat_;
  bool over_network_ = false;
  bool ended_ = false;
};

}  // namespace runjob
