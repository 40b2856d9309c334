#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/negotiation/control_message.hpp"
#include "runtime/negotiation/negotiation.hpp"
#include "runtime/negotiation/negotiation_observer.hpp"
#include "runtime/negotiation/plan_follower.hpp"
#include "runtime/negotiation/response_cache.hpp"
#include "runtime/negotiation/unnamed_order.hpp"

namespace runjob::runtime {

/// Negotiation without a coordinator: every rank receives in rounds the announcements of all ranks, and comes to the
/// same decisions in the same order as the others.
///
/// Announcements  a whole request, for an operation that is new or has changed; an id, for one that the response cache
///                knows; or a bucket of the plan. They are sent as 32-bit words, described in round_negotiation.cc.
/// Unnamed        operations without a name are announced in the order of their submission, with the name that the
///                response cache has for them. The ranks' n-th of a process set match: see UnnamedOrder. Whether they
///                agree is decided as for operations of one name.
/// Rules          a rank encodes a round's announcements with the cache as it was after the round before, which is the
///                same everywhere: so ids mean the same. Ids are never cut in two, requests may be.
/// Threads        one at a time.
class RoundNegotiation {
 public:
  using Id = ResponseCache::Id;
  using Bucket = PlanFollower::Bucket;

  struct Settings {
    std::size_t capacity = 1024;  ///< of the response cache; 0 for none
    PlanFollower::Settings plans = {};
  };

  /// `observer` may be null.
  RoundNegotiation(int rank, Members members, const Settings& settings, NegotiationObserver* observer);
  RoundNegotiation(const RoundNegotiation&) = delete;
  RoundNegotiation& operator=(const RoundNegotiation&) = delete;

  /// Ids, decisions and so on stay valid until the end of the next round.
  ResponseCache& cache() { return cache_; }
  PlanFollower& plans() { return plans_; }

  // The announcements of this rank.

  /// To be announced in the next rounds, or held back for a bucket.
  void submit(std::list<Request> requests);
  bool has_announcements() const { return !waiting_.empty() || !fragment_.empty() || plans_.has_full(); }
  /// Announces the requests that are held back one by one, as all others of this step.
  void release();
  struct Sole {
    Id id;
    bool begins;  ///< see Request
  };
  /// If the only announcement is an id, removes it from the queue and returns it.
  std::optional<Sole> take_sole_id();
  /// If all announcements are buckets, removes the next one from the queue and returns it.
  std::optional<Bucket> take_bucket();
  /// The next bytes of the announcements, at most `most`; may be none.
  std::string take_bytes(std::size_t most);
  /// The names in flight on this rank of operations that it announces now, in their order.
  class OwnNames {
   public:
    explicit OwnNames(const RoundNegotiation& negotiation) : negotiation_(negotiation) {}
    /// Lent until the next call.
    const std::string& of(Id id);

   private:
    const RoundNegotiation& negotiation_;
    std::map<int, std::size_t> unnamed_;  ///< by process set: those so far
    std::string name_;
  };

  // The announcements of all ranks. Errors  Error(kProtocol).

  /// The announcements of `rank` in a round; of every rank, in their order, before take().
  void receive(int rank, std::string_view bytes);
  void receive(int rank, Id id, bool begins);
  void receive_bucket(int rank, Bucket bucket);
  /// Ends the round: the decisions, in order.
  std::vector<Decision> take();
  /// A whole round in which all ranks announced `id` alone; in place of receive() and take().
  void agree(Id id, bool begins) {  // may_agree() is true
    note_agreed(id);
    if (plans_.is_only(id)) return;  // a loop around one operation needs no plan
    plans_.agreed(id, cache_.reduced_bytes(id), begins);
    end_round();
  }
  /// True unless an unnamed operation must be matched with one that another rank has announced before.
  bool may_agree(Id id) const { return !is_unnamed(id) || !unnamed_.has_open(cache_.signature_of(id, 0).process_set); }
  /// The name in flight on this rank of the operation that all ranks have just agreed on.
  std::string agreed_name(Id id) const {
    return is_unnamed(id) ? unnamed_.last(cache_.signature_of(id, 0).process_set) : cache_.name(id);
  }
  bool is_unnamed(Id id) const { return runtime::is_unnamed(cache_.name(id)); }
  /// A whole round in which all ranks announced one bucket alone: the decisions, in order. Nullopt when some operations
  /// of it were announced before: then the announcements must be received.
  std::optional<std::vector<Decision>> agree_on_bucket(Bucket bucket);

  /// Between two rounds, the same two on all ranks: a process set of these ranks ends. Its announcements count no more,
  /// and those that come later are ignored.
  void end_set(int process_set);

  /// The ranks that have not announced `name`; empty when none has.
  std::vector<int> missing(const std::string& name) const;
  /// By rank: the operation that it announced last, empty for none.
  std::vector<std::string> last() const;
  /// True while `rank` waits for any operation that it has announced.
  bool is_busy(int rank) const {
    return cache_.outstanding(rank) != 0 || unnamed_.outstanding(rank) != 0 || negotiation_.is_busy(rank);
  }

 private:
  struct Agreement {
    std::string name, key;  ///< in decisions, and for the cache
    std::vector<Signature> signatures;
  };

  void receive_request(int rank, Request request);
  void receive_unnamed(int rank, Id id, bool begins);
  void negotiate(int rank, const Request& request);
  void negotiate(UnnamedOrder::Place& place);
  void note_place(Decision& decision);
  void note(int rank, const std::string& name);
  void write_last();
  void note_agreed(Id id) {
    cache_.touch(id);
    last_agreed_ = id;
    if (is_unnamed(id)) unnamed_.agree(cache_.signature_of(id, 0).process_set);
    if (observer_ != nullptr && observer_->is_listening()) observe_all_ready(id);
  }
  void observe_all_ready(Id id);
  std::vector<int> missing_unnamed(const std::string& name) const;
  bool is_stale(Id id) const;
  void make_stale(Id id);
  void end_round();

  const int rank_;
  const std::size_t size_;
  NegotiationObserver* const observer_;
  ResponseCache cache_;
  PlanFollower plans_;
  UnnamedOrder unnamed_;
  Negotiation negotiation_;           ///< of the operations that are announced with whole requests
  std::vector<Decision> negotiated_;  ///< of this round
  std::list<Request> waiting_;
  std::string fragment_;               ///< the rest of a request that was too long for a round
  std::vector<std::string> inboxes_;   ///< by rank: the beginning of such a request
  std::vector<Id> stale_;              ///< ids that a rank has announced with a whole request in this round
  std::vector<Agreement> agreements_;  ///< of this round
  std::vector<Decision> decisions_;    ///< of this round
  std::vector<std::string> last_;      ///< by rank; see last()
  std::optional<Id> last_agreed_;      ///< the operation that all ranks announced since `last_` was written
};

}  // namespace runjob::runtime
