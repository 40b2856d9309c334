#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/messages/message_frame.hpp"
#include "runtime/operations/handle_table.hpp"

namespace runjob::runtime {

/// What a message and the receive that takes it have in common, apart from the sender.
struct MessageKey {
  std::int64_t set = 0;  ///< the process set: its id, and how many sets had been added when it was
  std::int64_t tag = 0;

  auto operator<=>(const MessageKey&) const = default;
};

/// A send or a receive in flight.
struct MessageOperation {
  static constexpr int kAnyPeer = -1;

  bool is_send = false;
  std::uint64_t number = 0;  ///< in the order of the calls
  int peer = kAnyPeer;       ///< a rank of the job
  MessageKey key;
  std::byte* buffer = nullptr;                    ///< lent until the completion is finished; a send only reads it
  std::size_t bytes = 0;                          ///< of the message; of a receive: the room
  std::shared_ptr<const std::vector<int>> ranks;  ///< of the set, as ranks of the job
  std::shared_ptr<Completion> completion;

  bool takes_from(int rank) const { return peer == kAnyPeer || peer == rank; }
};
using SharedOperation = std::shared_ptr<MessageOperation>;

/// A message that no receive was posted for when it came.
struct EarlyMessage {
  int peer = 0;
  Frame frame;                        ///< kEager or kAsk
  std::unique_ptr<std::byte[]> data;  ///< kEager
  bool is_complete = true;            ///< false: its bytes are arriving
  SharedOperation send = nullptr;     ///< a message to this rank itself whose bytes still are in the sender's buffer
  SharedOperation receive = nullptr;  ///< takes it as soon as it is complete
};

/// Pairs messages with receives: those of one sender, tag and set in the order in which they were sent and posted. A
/// receive from any rank takes the message that came first. Pure.
/// Threads  one at a time.
class MessageQueue {
 public:
  /// A message has come: the receive that was posted first for it leaves the queue. Null: none is there.
  SharedOperation take_receive(int peer, const MessageKey& key);
  /// Keeps a message; it stays where it is until it is taken or dropped.
  EarlyMessage& keep(const MessageKey& key, EarlyMessage message);
  /// The first message for a receive, whose peer is its sender from now on, leaves the queue. One that is arriving
  /// stays, keeps the receive, and is not returned. Not `is_found`: the receive is posted.
  std::optional<EarlyMessage> take_message(const SharedOperation& receive, bool& is_found);
  /// The message is complete: it leaves the queue if a receive waits for it.
  std::optional<EarlyMessage> completed(EarlyMessage& message);

  /// The rest of a message that is arriving will not come: it leaves the queue.
  void abandon(EarlyMessage& message);

  /// Removes a posted receive, and the mark of it at a message that is arriving.
  void withdraw(const SharedOperation& receive);
  /// Drops the message of a kAsk. False: there is none.
  bool drop(int peer, std::uint64_t id);
  /// Drops the messages of a set that are complete, and returns how many bytes of each sender's were kept.
  std::map<int, std::size_t> drop_set(std::int64_t set);

  const std::map<MessageKey, std::list<SharedOperation>>& posted() const { return posted_; }
  std::size_t kept() const;

 private:
  using Messages = std::list<EarlyMessage>;

  EarlyMessage remove(const EarlyMessage& message);

  std::map<MessageKey, std::list<SharedOperation>> posted_;
  std::map<MessageKey, Messages> early_;
};

}  // namespace runjob::runtime
