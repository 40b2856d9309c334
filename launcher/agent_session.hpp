#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "launcher/channel.hpp"
#include "launcher/frame_writer.hpp"
#include "launcher/heartbeat.hpp"
#include "launcher/host_connector.hpp"
#include "launcher/messages.hpp"

namespace runjob {

/// The launcher's end of one agent: opens the channel, reads its frames, sends it ours, and notices its end.
/// Threads  the loop's one thread. Must outlive the loop's run.
class AgentSession {
 public:
  /// What the owner is told, from the loop. `host` is the index given to the constructor.
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_frame(int host, const FrameHeader& header, std::string_view payload) = 0;
    /// After the frames that came in together.
    virtual void on_batch_end(int host) = 0;
    /// There is no channel, or no longer: nothing of the job is left on the host if the agent had said so before
    /// (kFinished). `how` is the reason as far as it is known.
    virtual void on_end(int host, const std::string& how) = 0;
  };

  /// Makes the channel to a running agent; throws Error with the reason when it cannot.
  using Open = std::function<boost::asio::awaitable<ReadyChannel>()>;

  /// `events` outlives this object.
  AgentSession(boost::asio::io_context& context, int host, Events& events);

  /// Over a channel that cannot break without a notice, to an agent that starts now. Call this or open(), once.
  void start(std::unique_ptr<Channel> channel);

  /// Over a network: opens the channel, and has heartbeats.
  void open(Open open);

  /// Gives the agent up at once: on_end() is called before this returns, unless it has been.
  void abandon(const std::string& why);

  /// Frames sent before the channel is open wait for it.
  void send(FrameType type, int rank, std::string payload) { writer_.send_control(type, rank, std::move(payload)); }
  void send_output_credit(int rank, Stream stream, std::int64_t bytes);
  void send_input(int rank, const std::string& bytes);

  /// Between these two, silence of either side is no failure: this process is about to be stopped.
  void pause_heartbeat();
  void resume_heartbeat();
  /// Calls `done` from the loop once everything that was sent has left this process; never if the channel breaks before.
  void when_sent(std::function<void()> done) { writer_.when_idle(std::move(done)); }

 private:
  boost::asio::awaitable<void> run(Open open);
  boost::asio::awaitable<void> read_frames(std::string received);
  void end(const std::string& how);

  boost::asio::io_context& context_;
  int host_;
  std::unique_ptr<Channel> channel_;  // null while it is being opened
  Events& events_;
  FrameWriter writer_;
  FrameParser parser_;
  Heartbeat heartbeat_;
  bool over_network_ = false;
  bool ended_ = false;
};

}  // namespace runjob
