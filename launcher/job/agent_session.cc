#include "launcher/job/agent_session.hpp"

#include <cstring>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/screen_text.hpp"
#include "launcher/channel/exception_message.hpp"

namespace runjob {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kShownReasonBytes = 4096;  // longer than any reason of an agent

}  // namespace

AgentSession::AgentSession(asio::io_context& context, int host, Events& events, std::unique_ptr<Alarm> heartbeat_alarm)
    : context_(context),
      host_(host),
      events_(events),
      writer_(context.get_executor()),
      parser_(1024 * 1024),
      heartbeat_(
          std::move(heartbeat_alarm), [this] { send(ToAgent::kHeartbeat, -1, {}); },
          [this] {
            const std::chrono::duration<double> silence = Heartbeat::kLongestSilence;
            end(fmt::format("it has sent nothing for {} s", silence.count()));
          }) {}

void AgentSession::start(std::unique_ptr<Channel> channel) {
  channel_ = std::move(channel);
  open({});
}

void AgentSession::open(Open open) {
  over_network_ = static_cast<bool>(open);
  asio::co_spawn(context_, run(std::move(open)), [this](const std::exception_ptr& error) {
    const std::string how = parser_.noise().empty() ? "it closed the connection" : "it sent: " + parser_.noise();
    end(exception_message(error).value_or(how));
  });
}

asio::awaitable<void> AgentSession::run(Open open) {
  std::string received;
  if (open) {
    ReadyChannel ready = co_await open();
    if (ended_) co_return;
    channel_ = std::move(ready.channel);
    received = std::move(ready.received);
    heartbeat_.start();
  }
  // A broken write is followed by the end of the reading side, which knows the reason better.
  asio::co_spawn(context_, writer_.run(*channel_), [](const std::exception_ptr&) {});
  co_await read_frames(std::move(received));
}

asio::awaitable<void> AgentSession::read_frames(std::string received) {
  const FrameParser<ToLauncher>::OnFrame handler = [this](const FrameHeader<ToLauncher>& header,
                                                          std::string_view payload) {
    if (header.type == ToLauncher::kHeartbeat) return;
    if (header.type == ToLauncher::kFailed)
      throw Error(Errc::kProtocol, fmt::format("it gave up: {}", one_line(payload.substr(0, kShownReasonBytes))));
    events_.on_frame(host_, header, payload);
  };
  parser_.feed(received, handler);
  events_.on_batch_end(host_);
  while (!ended_) {
    const FrameParser<ToLauncher>::Space space = parser_.space();
    const std::size_t bytes = co_await channel_->read_some(asio::mutable_buffer(space.data, space.size));
    if (bytes == 0) co_return;
    heartbeat_.on_sign_of_life();
    parser_.consume(bytes, handler);
    events_.on_batch_end(host_);
  }
}

void AgentSession::abandon(const std::string& why) {
  end(why);
}

void AgentSession::end(const std::string& how) {
  if (std::exchange(ended_, true)) return;
  if (channel_) channel_->close();
  events_.on_end(host_, how);
  heartbeat_.pause();
}

void AgentSession::send_output_credit(int process, Stream stream, std::int64_t bytes) {
  writer_.send_control(ToAgent::kOutputCredit, process, stream, encode(Credit{bytes}));
}

void AgentSession::send_input(int process, const std::string& bytes) {
  FrameHeader<ToAgent> header;
  header.type = ToAgent::kInput;
  header.process = process;
  auto data = std::make_unique_for_overwrite<char[]>(bytes.size());
  std::memcpy(data.get(), bytes.data(), bytes.size());
  writer_.send_bulk(header, std::move(data), bytes.size());
}

void AgentSession::pause_heartbeat() {
  if (!over_network_) return;
  heartbeat_.pause();
  send(ToAgent::kPause, -1, {});
}

void AgentSession::resume_heartbeat() {
  if (over_network_ && channel_ && !ended_) heartbeat_.start();
}

}  // namespace runjob
