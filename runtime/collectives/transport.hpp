#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/secrets/secret.hpp"
#include "base/status.hpp"

namespace runjob::runtime {

/// Work of a rank that must go on while it waits for something else, such as messages to and from other hosts.
/// Threads  one at a time.
class WaitingWork {
 public:
  virtual ~WaitingWork() = default;

  /// Does what can be done without waiting. True while there is unfinished work. Failures show in the work's own calls.
  virtual bool move() = 0;
  /// Sleeps until move() can do something, or for `most`.
  virtual void pause(std::chrono::microseconds most) = 0;
};

/// Memory that long messages are sent from and received in: at most one of each at a time.
/// Owner    the memory is lent until the buffer is destroyed. Its destructor does not wait, and nothing writes to the
///          memory afterwards.
/// Threads  one.
/// Errors   values, as Transport's.
class TransportBuffer {
 public:
  virtual ~TransportBuffer() = default;

  /// Both return at once. Sender and receiver of a message pass the same tag and the same number of bytes, above 0.
  /// Messages between two members with different tags may be received in any order; those with one tag come in the
  /// order in which they were sent.
  virtual Status send(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) = 0;
  virtual Status receive(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) = 0;

  /// Waits until the memory of the last send() may be changed again; returns at once when there was none.
  virtual Status wait_sent() = 0;
  /// Waits until the message of the last receive() has arrived.
  virtual Status wait_received() = 0;
};

/// Messages between the members of a small group of ranks, each on a host of its own.
/// Life     constructed; address() given to all members; connect() with all addresses; messages; destroyed.
/// Waiting  messages move only in calls of the transport. As long as one has begun and not finished, move() must be
///          called again and again, also while the caller waits for something else.
/// Threads  one caller at a time, except that any thread may call abort().
/// Errors   values: kTimeout, kPeerLost or kAborted, with the peer's rank in the text. After an error every call fails.
class Transport : public WaitingWork {
 public:
  /// The size of the longest short message.
  static constexpr std::size_t kMostShortBytes = 64u << 10;

  virtual std::string address() const = 0;
  /// `addresses` has the address of each member, by member.
  virtual Status connect(const std::vector<std::string>& addresses) = 0;
  /// How long a wait spins at most before it sleeps; not at all without this call. Before the first message.
  virtual void spin_for(std::chrono::microseconds) {}
  /// Counts up `moves`, which outlives the transport, each time that bytes of messages have moved. Before the first
  /// message.
  virtual void count_moves_in(std::atomic<std::uint64_t>& moves) { static_cast<void>(moves); }

  /// Short messages to and from `short_peers`, in order, without tags, by the path with the least latency. Two members
  /// may both send first and then receive. A message may be empty.
  virtual Status send_short(int peer, const void* data, std::size_t bytes) = 0;
  virtual Status receive_short(int peer, void* data, std::size_t bytes) = 0;
  /// Waits until all short messages of this member have left: until then, their receivers need calls of it.
  virtual Status flush() = 0;

  /// Between two calls for `peer`, the first with true: long messages go to this peer only, and none come from it. So
  /// more of their bytes may be on their way at once.
  virtual void set_one_way(int peer, bool is_one_way) { static_cast<void>(peer), static_cast<void>(is_one_way); }

  /// A buffer for messages to and from `long_peers`.
  virtual std::unique_ptr<TransportBuffer> buffer(void* data, std::size_t bytes) = 0;

  /// Ends every call, current and later, with an error soon; also a connect().
  virtual void abort() = 0;

  /// The rank to which the network has failed; -1 for none. A rank that has closed its connection is none. Any thread.
  virtual int lost_rank() const { return -1; }
};

struct TransportOptions {
  int member = 0;          ///< index of this member
  std::vector<int> ranks;  ///< ranks of the members, for messages
  /// The members with which this member exchanges short and long messages. The relation is mutual.
  std::vector<int> short_peers, long_peers;
  std::string bind_address;  ///< numeric
  Secret job_key = {};       ///< zero bytes when the addresses travel in secret
  bool encrypts = false;     ///< seals all messages; the same on all members
  std::chrono::milliseconds connect_timeout{30000}, operation_timeout{30000};
};

}  // namespace runjob::runtime
