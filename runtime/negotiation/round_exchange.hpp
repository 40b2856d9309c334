#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/negotiation/round_negotiation.hpp"
#include "runtime/negotiation/submission.hpp"

namespace runjob::runtime {

/// A rank's part in the rounds of its job: sends its announcements, receives those of all ranks, and comes to the
/// decisions. A small operation that the response cache knows needs nothing but its round: the ranks' inputs go along
/// with their messages.
/// Threads  one at a time, as Rounds; the counters from any.
/// Errors   those of Rounds; kProtocol for messages that make no sense.
class RoundExchange {
 public:
  using Deadline = Rounds::Deadline;
  /// The input of an operation in flight on this rank, by name.
  using InputOf = std::function<const void*(const std::string& name)>;

  /// `rounds` and `observer` are lent; `observer` may be null.
  RoundExchange(Rounds& rounds, int rank, const Members& members, const RoundNegotiation::Settings& settings,
                NegotiationObserver* observer)
      : rounds_(rounds),
        negotiation_(rank, members, settings, observer),
        cache_(negotiation_.cache()),
        plans_(negotiation_.plans()),
        rank_(rank),
        size_(static_cast<int>(members.size())) {}

  /// What this rank announces, holds back and knows.
  RoundNegotiation& negotiation() { return negotiation_; }

  /// True when there is a reason for a round: an announcement of this rank, or a rank that waits for this one.
  bool has_reason() const { return negotiation_.has_announcements() || rounds_.is_awaited(); }
  /// True while this rank holds back everything that it could announce, and waits for nothing that it has announced.
  /// Then it has no part in a round either: its bucket is about to be complete.
  bool holds_all() const {
    return plans_.missing() && !negotiation_.has_announcements() && !negotiation_.is_busy(rank_);
  }

  /// True while this rank has sent its message of a round that is not over.
  bool is_in_round() const { return is_in_round_; }
  /// Begins a round: sends the announcements.
  void begin_round(const InputOf& input_of);
  /// Waits for the messages of all ranks. False when the deadline was first: to be called again.
  bool collect(Deadline deadline) {
    return rounds_.collect(deadline, [this](int rank) { return negotiation_.is_busy(rank); });
  }
  /// Ends the round: the decisions, in order, which stay valid until the next one is ended and may be moved from. When
  /// `is_in_messages`, the data of all of them is in the messages until the next round or collective, for combine().
  struct Outcome {
    std::vector<Decision> decisions;
    bool is_in_messages = false;
  };
  Outcome& decide();
  /// Runs a call whose data is in the messages.
  void combine(const Call& call, const Decision& decision);
  /// To be called after the last combine() of a round.
  void end_messages() { rounds_.expect_next(std::exchange(message_bytes_, 0)); }

  /// True when decide_at_once() will announce the operation.
  bool can_decide_at_once(const SubmissionView& submission) const { return find_at_once(submission).has_value(); }
  /// The shortest way for the only operation in flight on this rank: one round, if the operation is small and all ranks
  /// announce it alone. Then its data is in the messages, for combine(). Nulls when it must go on as any other; it is
  /// announced already if is_in_round().
  struct AtOnce {
    const Decision* decision = nullptr;
    PreparedOperation* prepared = nullptr;
  };
  AtOnce decide_at_once(const SubmissionView& submission, Deadline deadline);

  /// The ranks that an operation submitted here waits for; empty when a lower rank waits for it as well, and reports
  /// it.
  std::vector<int> missing(const std::string& name) const;

  // Numbers of rounds so far. Any thread.
  std::uint64_t rounds() const { return count_.load(std::memory_order_relaxed); }
  std::uint64_t rounds_with_data() const { return count_with_data_.load(std::memory_order_relaxed); }
  std::uint64_t planned_rounds() const { return count_planned_.load(std::memory_order_relaxed); }

 private:
  using Id = RoundNegotiation::Id;
  using Bucket = RoundNegotiation::Bucket;

  std::optional<Id> find_at_once(const SubmissionView& submission) const;
  void send(Id id, const void* input, std::uint32_t flags);
  void send_bucket(Bucket bucket, const InputOf& input_of);
  bool decide_on_bucket(Bucket bucket);
  void receive_all();
  void reduce(const Call& call, std::size_t offset);
  bool fits_messages(const std::vector<Id>& bucket) const;
  /// True when a round is all that the operation needs.
  bool fits_messages(Id id) const {
    return cache_.largest_input(id) <= rounds_.most_data_bytes(cache_.signature_of(id, 0).kind);
  }
  void count(bool with_data);
  std::uint32_t tag_of_all() const;
  std::optional<Id> sole_id_of_all() const;

  Rounds& rounds_;
  RoundNegotiation negotiation_;
  ResponseCache& cache_;  ///< of the negotiation, as the plans
  PlanFollower& plans_;
  const int rank_, size_;
  bool is_in_round_ = false;
  Outcome outcome_;  ///< of the last round
  std::atomic<std::uint64_t> count_{0}, count_with_data_{0},
      count_planned_{0};  ///< of rounds; one thread at a time adds
  MessageInputs inputs_;
  std::size_t message_bytes_ = 0;  ///< bytes of inputs in this rank's message of the round
  std::vector<std::byte> packed_;  ///< a bucket's inputs, which are lent to the rounds
};

}  // namespace runjob::runtime
