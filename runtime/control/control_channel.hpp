#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/links/link_stream.hpp"

namespace runjob::runtime {

/// Frames over a link, or another connected stream socket, never blocking. A frame is a 32-bit little-endian
/// length and that many bytes.
/// Owner    of the socket, which it makes non-blocking. A fork()ed child does not keep the socket.
/// Threads  one.
/// Errors   none thrown. A connection that ended, failed, was tampered with or sent a frame beyond the limit is no
///          longer is_open(); frames that were received before can still be taken.
class ControlChannel {
 public:
  static constexpr std::size_t kMaxFrameBytes = 64u << 20;

  ControlChannel() = default;
  /// `max_frame_bytes` limits the size of received frames.
  explicit ControlChannel(LinkStream stream, std::size_t max_frame_bytes = kMaxFrameBytes);
  ~ControlChannel();
  ControlChannel(ControlChannel&&) noexcept;
  ControlChannel& operator=(ControlChannel&&) noexcept;

  bool is_open() const { return static_cast<bool>(stream_); }
  int fd() const { return stream_.fd(); }
  /// Why this end has closed a connection that carried something else than the other end has sent; otherwise empty.
  const std::string& refusal() const { return refusal_; }
  /// The error that has ended the connection; 0 if the other end has closed it, or nothing has ended it.
  int error() const { return error_; }
  short poll_events() const;  ///< the events that poll() should wait for

  /// Sends a frame, which may be given in two parts: as much as the socket accepts now. Keeps a copy of the rest for
  /// flush().
  void send(std::string_view frame, std::string_view second_part = {});
  void flush();

  /// Reads all bytes that have arrived.
  void receive();
  /// The next complete frame, valid until the next receive(); nullopt when there is none.
  std::optional<std::string_view> next_frame();

  /// True while the kernel of the other host has not acknowledged all that was sent. A close() may lose it then: bytes
  /// that come from the other end afterwards are answered with a reset.
  bool has_unacknowledged() const;

  void set_max_frame_bytes(std::size_t bytes) { max_frame_bytes_ = bytes; }
  void close();

 private:
  /// Received bytes begin with a page: glibc's large blocks begin 16 bytes after one, and Zen 3 copies to there from
  /// the beginning of the kernel's pages at a tenth of its speed (docs/performance.md).
  struct alignas(4096) Page {
    char bytes[4096];
  };

  char* received() { return incoming_.front().bytes; }
  std::size_t room() const { return incoming_.size() * sizeof(Page); }
  std::size_t send_parts(const std::array<std::string_view, 3>& parts);
  ssize_t receive_into(const iovec& room);

  LinkStream stream_;
  std::size_t max_frame_bytes_ = kMaxFrameBytes;
  std::string refusal_;
  std::string outgoing_;
  std::size_t sent_ = 0;                ///< bytes of outgoing_
  std::vector<Page> incoming_;          ///< room for received bytes
  int error_ = 0;                       ///< errno
  std::size_t filled_ = 0, taken_ = 0;  ///< bytes of incoming_ that were received, and returned as frames
};

}  // namespace runjob::runtime
