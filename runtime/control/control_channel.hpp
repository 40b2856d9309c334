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

  /// Sends a frame, which may be given in parts: as much as the socket accepts now. Keeps a copy of the rest for
  /// flush().
  using Parts = std::array<std::string_view, 3>;
  void send(const Parts& parts);
  void send(std::string_view frame) { send(Parts{frame}); }
  void flush();

  /// Reads bytes that have arrived: of a long frame to its end at most, else a page, or as many bytes as the last frame
  /// had. More of them keep the socket readable; of a sealed stream all are read.
  void receive();
  /// The next complete frame, valid until the next receive(); nullopt when there is none.
  std::optional<std::string_view> next_frame();
  /// Received bytes begin with a page: glibc's large blocks begin 16 bytes after one, and Zen 3 copies to there from
  /// the beginning of the kernel's pages at a tenth of its speed (docs/developers/measurements.md).
  struct alignas(4096) Page {
    char bytes[4096];
  };
  using Memory = std::vector<Page>;
  /// Exchanges `memory` for the one in which the frames lie that next_frame() has returned since the last receive():
  /// the caller owns them now.
  void keep_frames(Memory& memory);

  /// True while the kernel of the other host has not acknowledged all that was sent. A close() may lose it then: bytes
  /// that come from the other end afterwards are answered with a reset.
  bool has_unacknowledged() const;

  void set_max_frame_bytes(std::size_t bytes) { max_frame_bytes_ = bytes; }
  void close();

 private:
  static std::size_t pages_of(std::size_t bytes) { return (bytes + sizeof(Page) - 1) / sizeof(Page); }
  char* received() { return incoming_.front().bytes; }
  std::size_t room() const { return incoming_.size() * sizeof(Page); }
  std::size_t send_parts(std::string_view prefix, const Parts& parts);
  ssize_t receive_into(const iovec& room);
  std::size_t wanted_bytes() const;
  std::optional<std::size_t> next_end() const;

  LinkStream stream_;
  std::size_t max_frame_bytes_ = kMaxFrameBytes;
  std::string refusal_;
  std::string outgoing_;                ///< frames that the socket has not taken yet
  std::size_t sent_ = 0;                ///< bytes of outgoing_
  Memory incoming_;                     ///< room for received bytes
  int error_ = 0;                       ///< errno
  std::size_t filled_ = 0, taken_ = 0;  ///< bytes of incoming_ that were received, and returned as frames
  std::size_t usual_ = sizeof(Page);    ///< bytes of the last frame, as a guess of those of the next one
};

}  // namespace runjob::runtime
