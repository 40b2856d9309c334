#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <span>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "runtime/links/link_setup.hpp"
#include "runtime/links/listener.hpp"
#include "runtime/messages/message_peer.hpp"
#include "runtime/messages/message_queue.hpp"
#include "runtime/messages/messages_in_flight.hpp"
#include "runtime/negotiation/members.hpp"

namespace runjob::runtime {

/// What a rank knows about its job before its first message.
struct MessageTerms {
  int rank = 0;
  Members members;         ///< all ranks of the job
  std::vector<int> hosts;  ///< by rank: ranks on one host have equal numbers
  bool may_read = true;    ///< ranks of one host may read each other's memory through the kernel
  bool encrypts = false;   ///< seals what goes to other hosts; the same on all ranks
  LinkKey key;
  std::optional<Listener> listener;              ///< none for a rank that is alone
  std::vector<LinkAddress> addresses;            ///< of all ranks' listeners, by rank
  std::chrono::microseconds spin{0};             ///< the longest time for which a waiting thread keeps its processor
  std::function<void(const Status&)> on_broken;  ///< called when a connection has failed though no rank has ended
};

/// The messages of one rank to and from all others. Each pair of ranks gets one connection, when one of the two first
/// sends or receives. Nothing waits: the caller polls.
/// Ends     An operation whose peer leaves ends with the peer's reason. One whose peer is gone without a word waits up
///          to kMostVerdict for end(), which knows why.
/// Threads  one at a time.
/// Errors   the operations' outcomes.
class MessageExchange {
 public:
  using Clock = MessagePeer::Clock;

  /// The job's coordinator decides in less time why a rank is gone.
  static constexpr std::chrono::seconds kMostVerdict{2};

  explicit MessageExchange(MessageTerms terms);
  ~MessageExchange();

  /// Begins an operation, all of whose fields but `number` are set.
  void begin(const SharedOperation& operation);
  /// Ends the operations of a set.
  void end_set(std::int64_t set, const Status& why);
  /// Ends all operations, but no connection.
  void end_all(const Status& why);
  /// Ends all operations, now and later, and all connections.
  void end(const Status& why);
  /// A rank has left the job: operations that wait for it must find out.
  void someone_leaves();
  /// Nobody will explain why a rank is gone any more.
  void nobody_explains() { has_judge_ = false; }
  /// Announces to the others that this rank leaves.
  void say_goodbye(const Status& why);

  /// Takes the connections of other ranks that wait for it.
  void accept();
  /// Appends the descriptors to poll.
  void watch(std::vector<pollfd>& descriptors);
  /// Moves what can be moved without waiting. `descriptors`: those that the last watch() has appended, after poll().
  /// True if anything has moved. Other calls may come between the two.
  bool move(std::span<const pollfd> descriptors, Clock::time_point now);
  /// When move() is due without an event.
  std::optional<Clock::time_point> deadline(Clock::time_point now) const;
  /// True while move() is to be called.
  bool is_busy() const { return !in_flight_.empty() || has_unsent() || (setup_ && setup_->is_busy()); }
  bool has_unsent() const;

  std::vector<MessagesInFlight::Finished> take_finished() { return in_flight_.take_finished(); }
  /// The failures of connections that concern the whole job.
  std::vector<Status> take_broken() { return std::exchange(broken_, {}); }
  const MessagesInFlight& in_flight() const { return in_flight_; }

 private:
  MessagePeer& peer(int rank);
  void send_to_self(const SharedOperation& send);
  void receive(const SharedOperation& receive);
  void deliver_own(const SharedOperation& receive, const EarlyMessage& message);
  void move_setup(std::span<const pollfd> descriptors, Clock::time_point now);
  bool move_peer(MessagePeer& peer, bool can_receive, Clock::time_point now);
  void look(Clock::time_point now);
  void on_gone(MessagePeer& peer, Clock::time_point now);
  void end_peer(MessagePeer& peer);
  void end_operation(const SharedOperation& operation, const Status& why);
  void check_any_source(const SharedOperation& receive);

  MessageTerms terms_;
  MessageQueue queue_;
  MessagesInFlight in_flight_;
  std::unique_ptr<LinkSetup> setup_;  ///< null for a rank that is alone, and after end()
  std::map<int, std::unique_ptr<MessagePeer>> peers_;
  std::vector<std::byte> scratch_;             ///< where peers' bytes are read
  std::vector<MessagePeer*> watched_;          ///< by watch()
  std::size_t setup_descriptors_ = 0;          ///< of watch()
  std::map<int, Clock::time_point> verdicts_;  ///< by rank: when operations with a peer that is gone end
  std::map<int, Status> ended_;                ///< by rank: peers that are gone, and are known why
  Clock::time_point next_look_;
  std::uint64_t next_number_ = 1;
  bool has_leavers_ = false, has_judge_ = true;
  Status closed_;  ///< given to end()
  std::vector<Status> broken_;
};

}  // namespace runjob::runtime
