#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "runtime/messages/message_queue.hpp"
#include "runtime/negotiation/members.hpp"

namespace runjob::runtime {

/// The sends and receives of this rank that are not over, and the outcomes of those that are. Pure.
/// Threads  one at a time.
class MessagesInFlight {
 public:
  /// An operation that is over. Its completion is to be finished without any lock.
  struct Finished {
    std::shared_ptr<Completion> completion;
    Status status;
    Completion::Result result;
  };

  /// `rank`: this one.
  MessagesInFlight(int rank, Members members) : rank_(rank), members_(std::move(members)) {}

  void add(const SharedOperation& operation) { operations_.emplace(operation->number, operation); }
  bool contains(const SharedOperation& operation) const { return operations_.contains(operation->number); }
  bool empty() const { return operations_.empty(); }
  /// Those for which `is_meant(operation)`, the oldest first.
  template <class IsMeant>
  std::vector<SharedOperation> find(IsMeant is_meant) const {
    std::vector<SharedOperation> found;
    for (const auto& [number, operation] : operations_) {
      if (is_meant(*operation)) found.push_back(operation);
    }
    return found;
  }

  void sent(const SharedOperation& send) { finish(send, {}, {}); }
  /// A message of `bytes` bytes of `from`, a rank of the job, is in the receive's buffer.
  void received(const SharedOperation& receive, int from, std::size_t bytes);
  void failed(const SharedOperation& operation, const Status& why) { finish(operation, why, {}); }
  /// The message of `from` has more bytes than this receive has room for.
  void too_long(const SharedOperation& receive, int from, std::size_t bytes);
  /// Rank `to` has room for fewer bytes than this rank has sent to it.
  Status refused_by(int to, std::int64_t tag, std::size_t bytes, std::size_t room) const;
  std::vector<Finished> take_finished() { return std::exchange(finished_, {}); }

  int own_rank() const { return rank_; }
  /// "rank 3 on s4".
  std::string name(int rank) const { return rank_text(rank, members_); }
  /// "the send with tag 5 to rank 3 on s4".
  std::string text(const MessageOperation& operation) const;
  /// `why` with the operation's text in front.
  Status described(const MessageOperation& operation, const Status& why) const;

 private:
  void finish(const SharedOperation& operation, Status status, Completion::Result result);

  const int rank_;
  const Members members_;
  std::map<std::uint64_t, SharedOperation> operations_;  ///< by number
  std::vector<Finished> finished_;
};

}  // namespace runjob::runtime
