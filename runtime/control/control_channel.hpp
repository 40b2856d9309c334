#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"

namespace runjob::runtime {

/// Frames (a 32-bit little-endian length and that many bytes) over a connected stream socket, never blocking.
/// Owner    of the socket, which it makes non-blocking and which a fork()ed child does not keep.
/// Threads  one.
/// Errors   none thrown: a connection that ended, failed or sent a frame beyond the bound is_open() no more;
///          frames received before that can still be taken.
class ControlChannel {
 public:
  static constexpr std::size_t kMaxFrameBytes = 64u << 20;

  ControlChannel() = default;
  /// `max_frame_bytes` bounds what is received.
  explicit ControlChannel(UniqueFd socket, std::size_t max_frame_bytes = kMaxFrameBytes);
  ~ControlChannel();
  ControlChannel(ControlChannel&&) noexcept;
  ControlChannel& operator=(ControlChannel&&) noexcept;

  bool is_open() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }
  short poll_events() const;  ///< what poll() should wait for

  /// Sends what the socket takes now and keeps the rest for flush().
  void send(std::string_view frame);
  void flush();

  /// Reads what is there.
  void receive();
  /// The next complete frame.
  std::optional<std::string> next_frame();

  void set_max_frame_bytes(std::size_t bytes) { max_frame_bytes_ = bytes; }
  void close();

 private:
  UniqueFd socket_;
  std::size_t max_frame_bytes_ = kMaxFrameBytes;
  std::string outgoing_, incoming_;
  std::size_t sent_ = 0, taken_ = 0;  ///< how much of them is done with
};

}  // namespace runjob::runtime
