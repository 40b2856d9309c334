#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/engine/combine_messages.hpp"
#include "runtime/engine/control_message.hpp"
#include "runtime/engine/held_requests.hpp"
#include "runtime/engine/negotiation.hpp"
#include "runtime/engine/negotiation_observer.hpp"
#include "runtime/engine/prepared_operation.hpp"
#include "runtime/engine/repeating_cycle.hpp"
#include "runtime/engine/step_plan.hpp"

namespace runjob::runtime {

/// Negotiation without a coordinator: every rank hears in rounds what all ranks have submitted, and comes to the same
/// decisions in the same order as the others.
///
/// Response cache   An operation that all agreed on gets a number. A rank that submits it again, unchanged, sends the
///                  number alone; when all do, the decision is the one of before. A rank that changed something sends all
///                  of it, and then the ranks' signatures are compared anew. The least recently run operation is forgotten when there are
///                  more than `capacity`. Source  Horovod's response cache.
/// Plan             When a step of operations with numbers repeats, all ranks come to the same plan: buckets of operations that each have one
///                  number together. A rank holds what it submits back until the next bucket is complete. When all say it at once, it
///                  is decided. When they do not, those who have said it have said all that is in it: a rank that departs from the plan
///                  by release(), or by saying something else, changes when operations are decided, but never what is decided.
///                  A join, a change of an operation and one that is forgotten end the plan.
/// Rules            What a rank sends in a round is made with the cache as it was after the round before, which is the
///                  same everywhere: so numbers mean the same. Numbers are never cut in two, requests may be.
/// Threads          one at a time.
class RoundNegotiation {
 public:
  using Id = std::uint32_t;
  /// What a rank says: a number, or a bucket's. See round_negotiation.cc.
  using Word = std::uint32_t;

  struct Settings {
    std::size_t capacity = 1024;   ///< of the cache; 0 for none
    std::size_t bucket_bytes = 0;  ///< of a plan, what a bucket should have at least; 0 for no plans
  };

  /// `observer` may be null.
  RoundNegotiation(int rank, Members members, const Settings& settings, NegotiationObserver* observer);
  RoundNegotiation(const RoundNegotiation&) = delete;
  RoundNegotiation& operator=(const RoundNegotiation&) = delete;

  /// The number of this rank's operation, when it is the one that the cache knows.
  std::optional<Id> find(std::string_view name, const Signature& signature) const;
  std::optional<Id> find(std::string_view name, const SignatureView& signature) const;
  /// The decision that goes with a number which all ranks sent. Lent until the end of the next round.
  const Decision& decision(Id id) const { return slots_[id].decision; }
  /// What running it takes; not of a grouped operation. Lent as the decision.
  PreparedOperation& prepared(Id id) { return *slots_[id].prepared; }
  /// Of this rank's input, what the others need.
  const OwnMessage& own_message(Id id) const { return slots_[id].own; }
  /// Bytes of the largest input that any rank has for it.
  std::size_t largest_input(Id id) const { return slots_[id].largest_input; }
  /// Whether it is an allreduce whose input may be in the messages: that of all ranks has largest_input() bytes.
  bool is_plain_allreduce(Id id) const {
    return slots_[id].prepared && slots_[id].prepared->call.kind == Kind::kAllreduce &&
           slots_[id].largest_input != SIZE_MAX;
  }
  const std::string& name(Id id) const { return slots_[id].decision.name; }

  /// Adds to what this rank has to say, or holds back.
  void submit(std::vector<Request> requests);
  bool has_something_to_say() const { return !waiting_.empty() || !fragment_.empty() || held_.has_full(); }
  /// When all it has to say is one number: that number, which is then said.
  struct Sole {
    Id id;
    bool begins;  ///< see Request
  };
  std::optional<Sole> take_sole_id();
  /// That number, when it has been said without submit().
  void said_alone(Id id) { held_.said_alone(id); }
  /// When all it has to say is buckets of the plan: the word of the next one, which is then said.
  std::optional<Word> take_bucket();

  /// Requests that the next bucket lacks; nullopt while nothing is held back for one, or it lacks none.
  std::optional<std::size_t> missing_in_bucket() const {
    return held_.empty() || held_.has_full() ? std::nullopt : std::optional(held_.missing());
  }
  std::size_t held() const { return held_.size(); }
  /// Holds nothing back any more, until the step is over.
  void release();
  /// The next bytes of what it has to say, at most `most`; may be none.
  std::string take_bytes(std::size_t most);

  /// The ranks that have not said `name`; empty when none has.
  std::vector<int> missing(const std::string& name) const;
  /// By rank: what it said last, empty for nothing.
  std::vector<std::string> last() const;

  /// Whether `rank` waits for anything, as far as it has said.
  bool is_busy(int rank) const {
    return outstanding_[static_cast<std::size_t>(rank)] != 0 || negotiation_.is_busy(rank);
  }

  /// What `rank` said in a round; all of a round, by rank, before take(). Errors  Error(kProtocol).
  void receive(int rank, std::string_view bytes);
  void receive(int rank, Id id, bool begins);
  void receive_bucket(int rank, Word word);
  /// A round in which all ranks said `id` alone; in place of receive() and take().
  void agree(Id id, bool begins) {
    agreed(id);
    if (cycle_.is_only(id)) return;  // a loop around one operation takes no time for what it is not
    step(id, begins);
    end_round();
  }
  static bool is_bucket(Word word);
  /// The numbers in a bucket. Lent until the end of the round.
  const std::vector<Id>& bucket(Word word) const { return plan_.buckets()[find_bucket(word)].ids; }
  /// A round in which all ranks said a bucket alone, in place of receive() and take(): what is decided, in order. Nullopt when some have
  /// said some of it before: then it must be received.
  std::optional<std::vector<Decision>> agree_on_bucket(Word word);
  /// Ends the round: what is decided now, in order.
  std::vector<Decision> take();

 private:
  struct Slot {
    Decision decision;                  ///< its name is empty while the slot is free
    std::vector<Signature> signatures;  ///< by rank; one when all have the same
    std::size_t largest_input = 0;
    OwnMessage own;
    std::optional<PreparedOperation> prepared;
    std::vector<bool> ready;
    int ready_count = 0;
    bool is_stale = false;  ///< some rank changed it in this round
    bool begins = false;    ///< some rank has said so
    std::size_t bytes = 0;  ///< to be reduced, which all ranks have alike
    std::list<Id>::iterator age;

    const Signature& signature_of(int rank) const {
      return signatures[signatures.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
    }
  };

  struct Agreement {
    std::string name;
    std::vector<Signature> signatures;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::optional<Id> find_name(std::string_view name) const;
  std::size_t find_bucket(Word word) const;
  void step(Id id, bool begins);
  void agreed(Id id) {
    touch(slots_[id]);
    last_agreed_ = id;
    if (observer_ != nullptr && observer_->is_listening()) tell_ready(id);
  }
  void tell_ready(Id id);
  void end_round();
  void forget_steps();
  void follow(StepPlan plan);
  std::uint64_t hash_of(Id id) const;
  void receive_request(int rank, std::string_view bytes);
  void receive(int rank, Request request);
  void remember(Agreement agreement, const Decision& decision);
  void make_room();
  void forget(Id id);
  void touch(Slot& slot) {
    if (slot.age != ages_.begin()) ages_.splice(ages_.begin(), ages_, slot.age);
  }
  void make_stale(Id id);
  void expand_all();
  void note(int rank, const std::string& name);
  void make_unready(Slot& slot);

  const int rank_;
  const std::size_t size_;
  const Settings settings_;
  NegotiationObserver* const observer_;
  Negotiation negotiation_;
  std::unordered_map<std::string, Id, Hash, std::equal_to<>> ids_;
  /// Of names that were found, each where its place_of() is: looking there costs less.
  mutable std::array<Id, 64> looked_up_{};
  std::vector<Slot> slots_;
  std::vector<Id> free_;
  std::list<Id> ages_;  ///< most recently run first
  std::vector<Id> stale_;
  std::vector<Agreement> agreements_;  ///< of this round
  std::vector<Decision> decisions_;    ///< of this round
  std::vector<int> outstanding_;       ///< by rank: of the slots
  std::vector<std::string> last_;
  std::optional<Id> last_agreed_;  ///< what all said since then
  std::deque<Request> waiting_;
  RepeatingCycle cycle_;
  StepPlan plan_;
  HeldRequests held_;
  /// Of the cycle that has ended in this round.
  std::optional<RepeatingCycle::Event> ended_;
  bool plan_ends_ = false;            ///< with this round
  int repeats_ = 0;                   ///< of the cycle, while there is no plan for it
  int enough_repeats_ = 1;            ///< more after a plan that nobody has followed
  std::string fragment_;              ///< the rest of a request that was too long for a round
  std::vector<std::string> inboxes_;  ///< by rank: the beginning of one
};

}  // namespace runjob::runtime
