#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/negotiation/control_message.hpp"
#include "runtime/negotiation/members.hpp"

namespace runjob::runtime {

/// Decides which operations are ready on every rank, and in what order they run. Requests in, decisions out; no
/// sockets, no clock, no threads. Every rank that makes the same calls comes to the same decisions.
///
/// Rules    An operation is decided exactly once, when the last rank has submitted it: kExecute when all agree and all
///          can run it, otherwise kReject, so that a mismatch leaves nothing behind.
/// Sets     operations of several process sets of these ranks may be negotiated. join concerns only that of `members`.
/// Threads  one.
class Negotiation {
 public:
  /// Called with the signatures of the ranks, by rank, of an operation that is going to be executed.
  using OnAgreement = std::function<void(const std::string& name, const std::vector<Signature>& signatures)>;

  explicit Negotiation(Members members, OnAgreement on_agreement = {});

  /// Errors  Error(kProtocol) when the rank has submitted the name already.
  void submit(int rank, const Request& request);

  /// The decisions since the last call, in order.
  std::vector<Decision> take();

  /// Forgets the requests of a process set that ends, and ignores those that come later.
  void end_set(int process_set);
  bool has_ended(int process_set) const { return ended_sets_.contains(process_set); }

  /// The ranks that have not submitted `name`; empty when none has.
  std::vector<int> missing(const std::string& name) const;
  /// True while `rank` waits for any operation.
  bool is_busy(int rank) const { return outstanding_[static_cast<std::size_t>(rank)] != 0; }
  /// True while some ranks, but not all, have joined: they count as ready for every allreduce and barrier.
  bool has_joined() const { return !joined_.empty(); }

 private:
  struct Tally {
    std::vector<Signature> signatures;  ///< by rank; valid where `ready`
    std::vector<bool> ready;
    std::size_t ready_count = 0;
    std::uint64_t serial = 0;
    int process_set = 0;
  };

  void join(int rank);
  bool is_complete(const Tally& tally) const;
  bool is_excused(int rank, const Tally& tally) const;
  void forget_requests(const Tally& tally);
  std::vector<int> missing(const Tally& tally) const;
  void complete(const std::string& name);
  Status obstacle(const std::string& name, const Tally& tally) const;
  Decision decide(const std::string& name, const Tally& tally) const;
  Decision decide_without_joined(const std::string& name, const Tally& tally) const;
  void decide_allgather(const std::string& name, const Tally& tally, Decision& decision) const;
  Decision decide_alltoall(const std::string& name, const Tally& tally) const;

  const Members members_;
  const OnAgreement on_agreement_;
  std::unordered_map<std::string, Tally> tallies_;
  std::set<int> joined_;
  std::set<int> ended_sets_;
  std::vector<int> outstanding_;  ///< by rank
  std::uint64_t tally_count_ = 0;
  std::vector<Decision> decisions_;
};

/// The name of every rank's join.
inline constexpr char kJoinName[] = "<join>";

/// The disagreement between `signatures` (by rank), or "" when they agree. First extents of allgather and alltoall may
/// differ.
std::string mismatch(const std::string& name, const std::vector<Signature>& signatures, const Members& members);

}  // namespace runjob::runtime
