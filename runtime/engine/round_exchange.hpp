#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/rounds.hpp"
#include "runtime/engine/round_negotiation.hpp"
#include "runtime/engine/submission.hpp"

namespace runjob::runtime {

/// A rank's part in the rounds of its job: says what was submitted here, hears what all say, and comes to the decisions.
/// A small operation that all know needs nothing but its round: the ranks' inputs go along with their messages.
/// Threads  one at a time, as Rounds.   Errors  those of Rounds; kProtocol for what makes no sense.
class RoundExchange {
 public:
  using Deadline = Rounds::Deadline;
  /// The input of an operation in flight on this rank, by name.
  using InputOf = std::function<const void*(const std::string& name)>;

  /// The rest as for RoundNegotiation.
  RoundExchange(Rounds& rounds, int rank, const Members& members, const RoundNegotiation::Settings& settings,
                NegotiationObserver* observer)
      : rounds_(rounds),
        negotiation_(rank, members, settings, observer),
        rank_(rank),
        size_(static_cast<int>(members.size())) {}

  /// To be said in the next rounds.
  void submit(std::vector<Request> requests) { negotiation_.submit(std::move(requests)); }
  /// Whether there is a reason for a round: something to say, or somebody who waits for this rank.
  bool has_reason() const { return has_something_to_say() || rounds_.is_awaited(); }
  bool has_something_to_say() const { return negotiation_.has_something_to_say(); }

  /// See RoundNegotiation. What is held back is no reason to answer those who wait for this rank: it is about to be complete.
  std::optional<std::size_t> missing_in_bucket() const { return negotiation_.missing_in_bucket(); }
  std::size_t held() const { return negotiation_.held(); }
  bool holds_all() const { return missing_in_bucket() && !has_something_to_say() && !negotiation_.is_busy(rank_); }
  void release() { negotiation_.release(); }

  /// Whether this rank has given its message of a round that is not over.
  bool is_in_round() const { return is_in_round_; }
  /// Begins a round.
  void give(const InputOf& input_of);
  /// False when the deadline was first: to be called again.
  bool collect(Deadline deadline) {
    return rounds_.collect(deadline, [this](int rank) { return negotiation_.is_busy(rank); });
  }
  /// Ends the round. The decisions, in order. One that is alone may be in the messages: then combine() has its result, until the
  /// next round or collective.
  struct Outcome {
    std::vector<Decision> decisions;
    bool is_in_messages = false;
  };
  Outcome decide();
  /// Does what the call asks for, which is in the messages.
  void combine(const Call& call, const Decision& decision);
  /// That was the last one of the round's.
  void end_messages() { rounds_.expect_next(std::exchange(message_bytes_, 0)); }

  /// The shortest way, for the only operation in flight on this rank: one round, if it is small and all others do the same.
  /// Then it is in the messages, for combine(). Nulls: it must go on like any other; it was said already when is_in_round().
  struct AtOnce {
    const Decision* decision = nullptr;
    PreparedOperation* prepared = nullptr;
  };
  AtOnce decide_at_once(const SubmissionView& submission, Deadline deadline);

  /// The ranks that an operation submitted here waits for; empty when another rank, with a smaller number, knows it as well.
  std::vector<int> missing(const std::string& name) const;
  std::vector<std::string> last() const { return negotiation_.last(); }

  // So far. Any thread.
  std::uint64_t rounds() const { return count_.load(std::memory_order_relaxed); }
  std::uint64_t rounds_with_data() const { return count_with_data_.load(std::memory_order_relaxed); }
  std::uint64_t planned_rounds() const { return count_planned_.load(std::memory_order_relaxed); }

  /// Sleeps until there may be a reason for a round; see Rounds.
  void wait(Deadline deadline) { rounds_.wait(deadline); }

 private:
  using Id = RoundNegotiation::Id;

  using Word = RoundNegotiation::Word;

  void give(Id id, const void* input, std::uint32_t follows);
  void give_bucket(Word word, const InputOf& input_of);
  std::optional<Outcome> decide_on_bucket(Word word);
  void reduce(const Call& call, std::size_t offset);
  bool fits_message(const std::vector<Id>& bucket) const;
  void count(bool with_data);
  /// Whether a round is all that such an operation needs.
  bool fits_message(Id id) const { return negotiation_.largest_input(id) <= rounds_.most_data_bytes(); }
  Word tag_of_all() const;
  std::optional<Id> sole_id_of_all() const;

  Rounds& rounds_;
  RoundNegotiation negotiation_;
  const int rank_, size_;
  bool is_in_round_ = false;
  std::atomic<std::uint64_t> count_{0}, count_with_data_{0},
      count_planned_{0};  ///< of rounds; one thread at a time adds
  MessageInputs inputs_;
  std::size_t message_bytes_ = 0;  ///< that this rank has given in this round, of inputs
  std::vector<std::byte> packed_;  ///< a bucket's inputs
};

}  // namespace runjob::runtime
