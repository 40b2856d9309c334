#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "launcher/channel.hpp"
#include "launcher/frame_writer.hpp"
#include "launcher/messages.hpp"

namespace runjob {

/// The launcher's end of one agent: reads its frames, sends it ours, and notices its end.
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
    /// The channel is at its end: nothing of the job is left on the host if the agent had said so before
    /// (kFinished). `how` is the reason as far as it is known.
    virtual void on_end(int host, const std::string& how) = 0;
  };

  /// `events` outlives this object.
  AgentSession(boost::asio::io_context& context, int host, std::unique_ptr<Channel> channel, Events& events);

  /// Begins to read and write. Call once.
  void start();

  void send(FrameType type, int rank, std::string payload) { writer_.send_control(type, rank, std::move(payload)); }
  void send_output_credit(int rank, Stream stream, std::int64_t bytes);
  void send_input(int rank, const std::string& bytes);

  /// Calls `done` from the loop once everything that was sent has left this process; never if the channel breaks before.
  void when_sent(std::function<void()> done) { writer_.when_idle(std::move(done)); }

 private:
  boost::asio::awaitable<void> read_frames();
  void end(const std::exception_ptr& error, const std::string& otherwise);

  boost::asio::io_context& context_;
  int host_;
  std::unique_ptr<Channel> channel_;
  Events& events_;
  FrameWriter writer_;
  FrameParser parser_;
  bool ended_ = false;
};

}  // namespace runjob
