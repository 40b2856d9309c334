#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>

#include "base/status.hpp"
#include "runtime/links/silence_watch.hpp"
#include "runtime/messages/message_link.hpp"
#include "runtime/messages/message_queue.hpp"
#include "runtime/messages/messages_in_flight.hpp"

namespace runjob::runtime {

/// The messages to and from one other rank, by the protocol of message_frame.hpp. Nothing waits.
/// Owner    the queue and the operations in flight are lent, and shared with the other peers.
/// Threads  one at a time.
/// Errors   of move(): those of MessageLink, after which the peer is of no use: lose() is to be called.
class MessagePeer : public FrameReceiver {
 public:
  using Clock = SilenceWatch::Clock;

  /// `may_read`: the peer is on this host, and reading each other's memory is allowed.
  MessagePeer(int rank, bool may_read, MessageQueue& queue, MessagesInFlight& in_flight);

  int rank() const { return rank_; }
  /// Messages can pass from now on; those to be sent have waited for it.
  void connect(LinkStream stream);
  bool is_connected() const { return link_ != nullptr; }
  /// The socket, to poll; only while connected.
  int socket() const { return link_->socket(); }

  /// Begins to send. The operation is in flight.
  void send(const SharedOperation& operation);
  /// A receive, which is in flight, gets a message of this peer that came before it.
  void deliver(const SharedOperation& receive, EarlyMessage message);
  /// Ends an operation that is in flight with this peer before its time, without an outcome. Its buffer is not used any
  /// more.
  void withdraw(const SharedOperation& operation, const Status& why);
  /// So many bytes of early messages were dropped.
  void dropped(std::size_t bytes) {
    kept_ -= bytes;
    give_credit(bytes);
  }
  /// Announces that this rank leaves.
  void say_goodbye(const Status& why);

  /// Moves what can be moved without waiting. `can_receive`: poll() has found bytes. True if anything has moved.
  bool move(bool can_receive, std::span<std::byte> scratch);
  bool has_unsent() const { return link_ != nullptr && link_->has_unsent(); }
  /// True while there is memory of the peer to be read.
  bool has_reads() const { return !reads_.empty() || !read_.empty(); }
  /// The reason, if the peer's host is out of reach. To be called at intervals while an operation waits for the peer.
  std::optional<std::string> look(Clock::time_point now);

  /// No message can pass any more; the first reason counts. Its link is closed.
  void lose(const Status& why);
  /// OK while messages can pass, or may be going to.
  const Status& gone() const { return gone_; }
  /// The peer has announced that it leaves, so that it needs no other explanation.
  bool has_said_goodbye() const { return has_said_goodbye_; }
  /// A message that was sent before was longer than its receive: given once, to an operation of this set.
  std::optional<Status> take_complaint(std::int64_t set);

  std::byte* begin(const Frame& frame) override;
  void end(const Frame& frame) override;

 private:
  /// A long message that a receive has been found for.
  struct Transfer {
    SharedOperation receive;
    std::uint64_t bytes = 0, address = 0;
    std::uint64_t read = 0;  ///< bytes that were read in the peer's memory
  };

  void start(const SharedOperation& send);
  void give_credit(std::size_t bytes);
  void write();
  void begin_transfer(const SharedOperation& receive, const Frame& ask);
  void grant(std::uint64_t id);
  bool read_memory();
  void finish_reads();
  std::byte* begin_eager(const Frame& frame);
  void end_eager(const Frame& frame);
  void take_ask(const Frame& frame);
  void take_token(const Frame& frame);
  void take_grant(std::uint64_t id);
  void take_refusal(const Frame& frame);
  void take_withdrawal(const Frame& frame);
  SharedOperation match(const Frame& frame);
  void refuse(std::uint64_t id, const Frame& message, std::size_t room);

  const int rank_;
  const bool may_read_;
  MessageQueue& queue_;
  MessagesInFlight& in_flight_;
  std::unique_ptr<MessageLink> link_;
  SilenceWatch silence_;
  Status gone_;
  bool has_said_goodbye_ = false;

  // sending
  std::deque<SharedOperation> waiting_;             ///< for the link
  std::map<std::uint64_t, SharedOperation> asked_;  ///< by number: sends whose bytes the peer has not asked for
  std::map<MessageLink::Sender, SharedOperation> sending_;
  std::size_t untaken_ = 0;                    ///< bytes of eager messages that the peer has not reported as taken
  std::uint64_t token_ = 0;                    ///< that the peer may read in this rank's memory
  std::map<std::int64_t, Status> complaints_;  ///< by set

  // receiving
  std::map<std::uint64_t, Transfer> transfers_;  ///< by the peer's number
  std::deque<std::uint64_t> reads_, read_;       ///< transfers to be read in the peer's memory, and that have been
  std::size_t kept_ = 0;                         ///< bytes of eager messages of the peer that wait for a receive
  std::size_t owed_ = 0;                         ///< bytes taken that the peer does not know of
  std::size_t asks_ = 0;                         ///< messages of kAsk that wait for a receive
  pid_t process_ = 0;                            ///< of the peer; 0: its memory cannot be read
  SharedOperation arriving_;                     ///< the receive whose bytes arrive
  EarlyMessage* early_ = nullptr;                ///< that arrives
  std::string text_;                             ///< that arrives
};

}  // namespace runjob::runtime
