#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace runjob::runtime {

/// Memory that long messages leave from and arrive in: at most one of each kind at a time.
/// Owner    the memory is lent until the buffer is destroyed, which waits for nobody and leaves nothing behind that writes.
/// Threads  one.
/// Errors   values, as Transport's.
class TransportBuffer {
 public:
  virtual ~TransportBuffer() = default;

  /// Return at once. Sender and receiver of a message give the same tag and the same number of bytes, above 0; messages
  /// between two members with different tags may be received in any order.
  virtual Status send(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) = 0;
  virtual Status receive(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) = 0;

  /// Until the memory of the last send() may be changed again; at once when there was none.
  virtual Status wait_sent() = 0;
  /// Until the message of the last receive() is there.
  virtual Status wait_received() = 0;
};

/// Messages between the members of a small group of ranks, each on a host of its own.
/// Life     made; address() given to all members; connect() with all addresses; messages; destroyed.
/// Threads  one caller at a time, but abort() from any thread.
/// Errors   values only, since a transport may live in a module of its own: kTimeout, kPeerLost or kAborted, and the peer's
///          rank in the text. After one, nothing works any more.
class Transport {
 public:
  /// The longest short message.
  static constexpr std::size_t kMostShortBytes = 64u << 10;

  virtual ~Transport() = default;

  virtual std::string address() const = 0;
  /// `addresses`: by member.
  virtual Status connect(const std::vector<std::string>& addresses) = 0;

  /// Short messages to and from `short_peers`: in their order, without tags, with the shortest way. Two members may both send
  /// first and receive then.
  virtual Status send_short(int peer, const void* data, std::size_t bytes) = 0;
  virtual Status receive_short(int peer, void* data, std::size_t bytes) = 0;

  /// For messages to and from `long_peers`.
  virtual std::unique_ptr<TransportBuffer> buffer(void* data, std::size_t bytes) = 0;

  /// Every call, now and later, ends with an error soon; also a connect().
  virtual void abort() = 0;
};

struct TransportOptions {
  int member = 0;          ///< which one this is
  std::vector<int> ranks;  ///< of the members, for messages to people
  /// Whom this member exchanges short and long messages with. Who has a peer is its peer.
  std::vector<int> short_peers, long_peers;
  std::string bind_address;  ///< numeric
  std::chrono::milliseconds connect_timeout{30000}, operation_timeout{30000};
  std::chrono::microseconds spin{0};  ///< how long a short message is looked for before the thread sleeps
};

}  // namespace runjob::runtime
