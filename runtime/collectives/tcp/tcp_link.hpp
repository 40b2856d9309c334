#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <limits>
#include <memory>
#include <sys/uio.h>
#include <vector>

#include "runtime/links/link_stream.hpp"

namespace runjob::runtime {

/// A message that a caller waits for: to be sent, or to arrive.
struct LinkRequest {
  bool is_done = true;
};

/// Messages with tags over one TCP connection whose socket does not block. A message is a header of 128 bytes (tag and
/// length, the rest is zero) and its bytes. They are sent from the caller's memory and received in it without a copy in
/// between: the link expects the message that was asked for first, and reads its header and its bytes with one call. A
/// message that comes before it is asked for, while another one is awaited, is kept in memory of the link. This memory
/// grows as the bytes arrive: a length that the other end only announces takes none.
///
/// Owner    data is lent until its request is done; both outlive it, or are taken back with forget().
/// Threads  one at a time.
/// Errors   of send(), receive() and move(): Error(kPeerLost) with the system's reason when the connection has ended,
///          kProtocol when the other end sends what no message can be, kAuth when sealed bytes were changed.
///          The link is useless afterwards.
class TcpLink {
 public:
  /// The tag of short messages. Messages with one tag come in the order in which they were sent.
  static constexpr std::uint64_t kShortTag = std::numeric_limits<std::uint64_t>::max();

  explicit TcpLink(LinkStream stream) : stream_(std::move(stream)) {}

  int socket() const { return stream_.fd(); }

  /// Begins to send. What the connection does not take at once is sent by move().
  void send(std::uint64_t tag, const void* data, std::size_t bytes, LinkRequest& request);
  /// The same with a copy of the data where it is needed, so that the caller may change it at once.
  void send_copy(std::uint64_t tag, const void* data, std::size_t bytes);
  /// Begins to receive. The message must have exactly this length.
  void receive(std::uint64_t tag, void* data, std::size_t bytes, LinkRequest& request);
  /// Gives the memory of an unfinished request back. False when that is not possible any more without breaking the
  /// stream of messages: the link must not be used again.
  bool forget(const LinkRequest& request);

  bool has_unsent() const { return !outgoing_.empty(); }
  bool has_awaited() const { return !awaited_.empty() || incoming_.request != nullptr; }
  /// Moves what can be moved without waiting. Returns the number of bytes.
  std::size_t move() { return write() + read(); }
  std::size_t write();
  std::size_t read();
  /// The error that has ended the connection; 0 if the other end has closed it, or nothing has ended it.
  int error() const { return error_; }

 private:
  /// The kernel often begins a new page with a message. AMD's Zen 3 copies at a tenth of its speed when the target
  /// begins 1 to 32 bytes after the source, modulo the size of a page, and users' memory mostly begins 0, 16 or 64
  /// bytes after a page does. 128 bytes keep the message's data away from these places (measurements.md).
  struct Header {
    std::uint64_t tag = 0, bytes = 0;
    std::array<std::byte, 112> unused = {};
  };
  static_assert(sizeof(Header) == 128);
  struct Outgoing {
    Header header;
    const std::byte* data;
    std::size_t done;  ///< of header and data
    LinkRequest* request;
    std::unique_ptr<std::byte[]> copy;
  };
  struct Awaited {
    std::uint64_t tag;
    std::byte* data;
    std::size_t bytes;
    LinkRequest* request;
  };
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  using OwnBytes = std::unique_ptr<std::byte[], Free>;  // of malloc(), because it grows
  /// A message that came before it was asked for.
  struct Early {
    std::uint64_t tag;
    OwnBytes data;
    std::size_t bytes;
  };
  /// The message that is arriving.
  struct Incoming {
    bool is_begun = false;
    std::uint64_t tag = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0, done = 0;
    LinkRequest* request = nullptr;  ///< null: nobody has asked for it yet
    std::size_t room = 0;            ///< the bytes for which `data` has memory
    OwnBytes own = nullptr;          ///< its memory while nobody has asked for it

    std::size_t free_room() const { return room - done; }
  };

  [[noreturn]] void throw_lost(int error);
  void finish_sent(std::size_t bytes);
  std::size_t read_socket(bool& is_drained);
  std::size_t read_staged();
  void take_header(std::size_t expected_bytes);
  void begin(const Header& header);
  void make_room();
  void end_if_complete();
  bool matches(const Awaited& awaited) const { return awaited.tag == header_.tag; }

  LinkStream stream_;
  std::deque<Outgoing> outgoing_;
  std::deque<Awaited> awaited_;
  std::vector<Early> early_;
  Incoming incoming_;
  Header header_;  ///< of the next message
  std::size_t header_done_ = 0;
  std::vector<std::byte> staged_;  ///< bytes that were read into the memory of a message that did not come
  std::size_t staged_done_ = 0;
  int error_ = 0;  ///< errno
};

}  // namespace runjob::runtime
