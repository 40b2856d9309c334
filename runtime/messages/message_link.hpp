#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/links/link_stream.hpp"
#include "runtime/messages/message_frame.hpp"

namespace runjob::runtime {

/// Takes the frames of a link.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  /// A frame has come. Returns the memory for its bytes, which is lent until end() or MessageLink::drop_incoming();
  /// null: the bytes are dropped.
  virtual std::byte* begin(const Frame& frame) = 0;
  /// All bytes of the frame have come; called at once for a frame without bytes.
  virtual void end(const Frame& frame) = 0;
};

/// The frames of one link, in both directions. Nothing waits.
/// Owner    of the connection. Bytes that are sent are lent until write() returns their owner.
/// Threads  one at a time.
/// Errors   of write() and read(): Error(kPeerLost) with the system's reason when the connection has ended, kProtocol
///          for what is no frame, kAuth when sealed bytes were changed; those of the receiver. The link ends then.
class MessageLink {
 public:
  /// Identifies the owner of bytes that are being sent.
  using Sender = const void*;

  explicit MessageLink(LinkStream stream);
  ~MessageLink();
  MessageLink(const MessageLink&) = delete;
  MessageLink& operator=(const MessageLink&) = delete;

  int socket() const { return stream_.fd(); }

  /// Queues a frame. `data` has its payload_of() bytes. Without a sender they are copied.
  void send(const Frame& frame, const void* data = nullptr, Sender sender = nullptr);
  bool has_unsent() const { return !outgoing_.empty(); }
  /// Sends what the connection takes. Appends the senders whose bytes it has taken. True if any byte has moved.
  bool write(std::vector<Sender>& done);
  /// From now on `sender`'s memory is not used: bytes of it that the other end expects are copied.
  void take_back(Sender sender);

  /// Receives what is there. `scratch`: room for bytes, the same for all links. True if any byte has moved.
  bool read(FrameReceiver& receiver, std::span<std::byte> scratch);
  /// The memory that begin() gave is not used from now on.
  void drop_incoming() { target_ = nullptr; }
  bool is_receiving_in(const std::byte* memory) const { return is_begun_ && memory != nullptr && target_ == memory; }

 private:
  struct Outgoing {
    Frame frame;
    const std::byte* data;
    std::size_t bytes;
    std::size_t done = 0;  ///< of frame and data
    Sender sender;
    std::unique_ptr<std::byte[]> copy;
  };

  void finish_sent(std::size_t bytes, std::vector<Sender>& done);
  void take(FrameReceiver& receiver, std::span<const std::byte> bytes);
  void end_if_complete(FrameReceiver& receiver);

  LinkStream stream_;
  std::deque<Outgoing> outgoing_;
  Frame frame_;  ///< that is arriving
  std::size_t frame_done_ = 0;
  bool is_begun_ = false;        ///< the header is complete
  std::byte* target_ = nullptr;  ///< of its bytes; null: nowhere
  std::size_t bytes_ = 0, bytes_done_ = 0;
};

}  // namespace runjob::runtime
