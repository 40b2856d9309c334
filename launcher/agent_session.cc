#include "launcher/agent_session.hpp"

#include <cstring>
#include <utility>

#include <boost/asio/co_spawn.hpp>

namespace runjob {

namespace asio = boost::asio;

AgentSession::AgentSession(asio::io_context& context, int host, std::unique_ptr<Channel> channel, Events& events)
    : context_(context),
      host_(host),
      channel_(std::move(channel)),
      events_(events),
      writer_(context.get_executor(), *channel_),
      parser_(1024 * 1024) {}

void AgentSession::start() {
  // A broken write is followed by the end of the reading side, which knows more.
  asio::co_spawn(context_, writer_.run(), [](const std::exception_ptr&) {});
  asio::co_spawn(context_, read_frames(),
                 [this](const std::exception_ptr& error) { end(error, "it closed the connection"); });
}

asio::awaitable<void> AgentSession::read_frames() {
  const FrameParser::OnFrame handler = [this](const FrameHeader& header, std::string_view payload) {
    events_.on_frame(host_, header, payload);
  };
  for (;;) {
    const FrameParser::Space space = parser_.space();
    const std::size_t bytes = co_await channel_->read_some(asio::mutable_buffer(space.data, space.size));
    if (bytes == 0) co_return;
    parser_.consume(bytes, handler);
    events_.on_batch_end(host_);
  }
}

void AgentSession::end(const std::exception_ptr& error, const std::string& otherwise) {
  if (std::exchange(ended_, true)) return;
  std::string how = parser_.noise().empty() ? otherwise : "it said: " + parser_.noise();
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& e) {
    how = e.what();
  }
  channel_->close();
  events_.on_end(host_, how);
}

void AgentSession::send_output_credit(int rank, Stream stream, std::int64_t bytes) {
  writer_.send_control(FrameType::kOutputCredit, rank, stream, encode(Credit{bytes}));
}

void AgentSession::send_input(int rank, const std::string& bytes) {
  FrameHeader header;
  header.type = FrameType::kInput;
  header.rank = rank;
  auto data = std::make_unique_for_overwrite<char[]>(bytes.size());
  std::memcpy(data.get(), bytes.data(), bytes.size());
  writer_.send_bulk(header, std::move(data), bytes.size());
}

}  // namespace runjob
