#pragma once

#include <cerrno>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

#include "base/unique_handle.hpp"
#include "launcher/channel/frame.hpp"

namespace runjob {

/// A pair of connected sockets, closed on exec.
inline std::pair<UniqueFd, UniqueFd> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no socket pair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// The other end of a channel, scripted by a test: sends frames of one direction and receives those of the other one,
/// each call blocking.
/// Errors  std::runtime_error when nothing arrives for a minute.
template <FrameType Out, FrameType In>
class FramePeer {
 public:
  struct Frame {
    FrameHeader<In> header;
    std::string payload;
  };

  explicit FramePeer(UniqueFd socket) : socket_(std::move(socket)) {
    const timeval limit{60, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  void send(Out type, int process = -1, const std::string& payload = "", Stream stream = Stream::kNone) {
    FrameHeader<Out> header;
    header.type = type;
    header.process = process;
    header.stream = stream;
    header.length = static_cast<std::uint32_t>(payload.size());
    std::string bytes;
    append_header(bytes, header);
    send_bytes((std::exchange(sent_magic_, true) ? "" : std::string(kMagic)) + bytes + payload);
  }

  /// Bytes as they are; errors are ignored, for a side that has left already.
  void send_bytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  /// The next frame; nullopt at the end of the stream.
  std::optional<Frame> next() {
    while (frames_.empty()) {
      if (!receive()) return std::nullopt;
    }
    Frame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

  /// The next frame of this type. Those before it stay for later calls. Errors  std::runtime_error when the stream ends
  /// first.
  Frame next(In type) {
    for (std::size_t i = 0;; ++i) {
      while (i == frames_.size()) {
        if (!receive())
          throw std::runtime_error("the stream ended before a frame of type " + std::to_string(static_cast<int>(type)));
      }
      if (frames_[i].header.type != type) continue;
      Frame frame = std::move(frames_[i]);
      frames_.erase(frames_.begin() + static_cast<std::ptrdiff_t>(i));
      return frame;
    }
  }

  /// Drops frames until the stream ends.
  void wait_for_end() {
    while (next()) {
    }
  }

  void close() { socket_.reset(); }

 private:
  /// Waits for bytes; false at the end of the stream.
  bool receive() {
    const auto space = parser_.space();
    ssize_t count = -1;
    do count = ::recv(socket_.get(), space.data, space.size, 0);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno != ECONNRESET) throw std::runtime_error("nothing arrived for a minute");
    if (count <= 0) return false;
    parser_.consume(static_cast<std::size_t>(count), [this](const FrameHeader<In>& header, std::string_view payload) {
      frames_.push_back({header, std::string(payload)});
    });
    return true;
  }

  UniqueFd socket_;
  FrameParser<In> parser_;
  std::deque<Frame> frames_;
  bool sent_magic_ = false;
};

/// A launcher, and an agent.
using LauncherPeer = FramePeer<ToAgent, ToLauncher>;
using AgentPeer = FramePeer<ToLauncher, ToAgent>;

}  // namespace runjob
