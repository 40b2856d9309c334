#include "launcher/ssh/channel_ssh.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/ssh/message_lines.hpp"

namespace runjob {

namespace asio = boost::asio;

namespace {

constexpr unsigned kWindowBytes = 2 * 1024 * 1024;  // what the host may send before we have read it
constexpr unsigned kPacketBytes = 32 * 1024;        // what the host may put into a packet
constexpr std::size_t kGatheredBytes = 32'000;      // what libssh2 puts into one, a bit less than the most it would
constexpr std::size_t kQueuedBytes = 256 * 1024;    // encrypted ahead of the socket, before others have their turn

/// Copies from several buffers into one, packet by packet: each packet costs a checksum and a system call's share, and
/// a frame's head alone would have one to itself.
class Gathering {
 public:
  explicit Gathering(const std::vector<asio::const_buffer>& buffers) : buffers_(buffers) {}

  /// Fills `packet` as far as there is something left; how many bytes that is.
  std::size_t next(std::array<char, kGatheredBytes>& packet) {
    std::size_t filled = 0;
    while (filled < packet.size() && index_ < buffers_.size()) {
      const asio::const_buffer rest = buffers_[index_] + offset_;
      const std::size_t bytes = std::min(rest.size(), packet.size() - filled);
      if (bytes != 0) std::memcpy(packet.data() + filled, rest.data(), bytes);
      filled += bytes;
      offset_ += bytes;
      if (bytes == rest.size()) {
        ++index_;
        offset_ = 0;
      }
    }
    return filled;
  }

 private:
  const std::vector<asio::const_buffer>& buffers_;
  std::size_t index_ = 0;
  std::size_t offset_ = 0;
};

}  // namespace

struct SshChannel::State {
  std::unique_ptr<SshSession> session;
  LIBSSH2_CHANNEL* channel = nullptr;  // the session's
  MessageLines messages;
  std::array<char, kGatheredBytes> packet{};  // being written; libssh2 wants the same bytes until it has taken them

  void forward_messages() {
    std::array<char, 4096> text;
    for (;;) {
      const ssize_t bytes = libssh2_channel_read_stderr(channel, text.data(), text.size());
      if (bytes <= 0) return;
      messages.add({text.data(), static_cast<std::size_t>(bytes)});
    }
  }

  [[noreturn]] void fail(std::string_view doing) const {
    throw Error(Errc::kConnect, fmt::format("{}: {}", doing,
                                            session->farewell().empty() ? session->last_error() : session->farewell()));
  }
};

asio::awaitable<std::unique_ptr<Channel>> SshChannel::open(std::unique_ptr<SshSession> session, std::string command,
                                                           RemoteMessage message) {
  constexpr std::string_view kSession = "session";
  const auto state = std::make_shared<State>();
  state->session = std::move(session);
  state->messages = MessageLines(std::move(message));
  LIBSSH2_SESSION* const handle = state->session->get();
  const auto open_channel = [&]() -> long {
    state->channel =
        libssh2_channel_open_ex(handle, kSession.data(), kSession.size(), kWindowBytes, kPacketBytes, nullptr, 0);
    return state->channel == nullptr ? libssh2_session_last_errno(handle) : 0;
  };
  const long opened = co_await state->session->ready(open_channel);
  if (opened != 0) state->fail("the host does not open a session");
  const auto start = [&]() -> long { return libssh2_channel_exec(state->channel, command.c_str()); };
  const long started = co_await state->session->ready(start);
  if (started != 0) state->fail("the host does not run a command");
  co_return std::unique_ptr<Channel>(new SshChannel(state));
}

SshChannel::SshChannel(std::shared_ptr<State> state) : state_(std::move(state)) {}

SshChannel::~SshChannel() {
  state_->session->wire().close();
}

asio::awaitable<std::size_t> SshChannel::read_some(asio::mutable_buffer buffer) {
  const std::shared_ptr<State> state = state_;  // this channel may be gone before we are
  SshWire& wire = state->session->wire();
  wire.require_open();
  for (;;) {
    state->forward_messages();
    const ssize_t bytes = libssh2_channel_read(state->channel, static_cast<char*>(buffer.data()), buffer.size());
    wire.flush();
    if (bytes > 0) co_return static_cast<std::size_t>(bytes);
    if (bytes < 0 && bytes != LIBSSH2_ERROR_EAGAIN) state->fail("reading from the host");
    if (libssh2_channel_eof(state->channel) == 1) {
      state->messages.finish();
      co_return 0;
    }
    co_await wire.input();
  }
}

asio::awaitable<void> SshChannel::write(std::vector<asio::const_buffer> buffers) {
  const std::shared_ptr<State> state = state_;
  SshWire& wire = state->session->wire();
  wire.require_open();
  Gathering gathering(buffers);
  for (std::size_t size = gathering.next(state->packet); size != 0; size = gathering.next(state->packet)) {
    for (std::size_t written = 0; written < size;) {
      const auto call = [&]() -> long {
        const ssize_t bytes = libssh2_channel_write(state->channel, state->packet.data() + written, size - written);
        return bytes == 0 ? LIBSSH2_ERROR_EAGAIN : bytes;  // it has no room for any
      };
      const long bytes = co_await state->session->ready(call);
      if (bytes < 0) state->fail("writing to the host");
      written += static_cast<std::size_t>(bytes);
    }
    co_await wire.flushed(kQueuedBytes);
  }
  co_await wire.flushed(0);
}

std::string SshChannel::last_message() const {
  return state_->messages.last();
}

void SshChannel::close() {
  state_->session->wire().close();
}

}  // namespace runjob
