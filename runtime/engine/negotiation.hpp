#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/engine/control_message.hpp"
#include "runtime/engine/members.hpp"
#include "runtime/engine/stall_inspector.hpp"

namespace runjob::runtime {

/// The coordinator's mind: which operations are ready on every rank, in what order they run, and how the job
/// ends. Messages in, decisions out; no sockets, no clock, no threads.
///
/// Rules    An operation is decided exactly once, when the last rank has submitted it: kExecute when all
/// agree,
///          else kReject, so a mismatch leaves nothing behind. Decisions have one order for all ranks.
///          A goodbye gives kLeaving; when every rank has drained (or is gone), kReleased. A lost rank gives
///          kAbort unless everything was over. After kAbort or kReleased nothing more is decided. A failed
///          backend alone is only a suspicion (is_suspicious()): the loss that caused it is the better
///          verdict and usually follows at once; give_up() decides without it.
/// Threads  one.
class Negotiation {
 public:
  /// Told the ranks' signatures, by rank, of an operation that is going to be executed.
  using OnAgreement = std::function<void(const std::string& name, const std::vector<Signature>& signatures)>;

  explicit Negotiation(Members members, OnAgreement on_agreement = {});

  void receive(int rank, const RankMessage& message);
  /// The connection to `rank` ended.
  void lost(int rank);

  bool is_suspicious() const { return phase_ != Phase::kEnded && !suspicion_.ok(); }
  void give_up();

  /// What was decided since the last call, in order.
  std::vector<Decision> take();

  /// The operations that some ranks have submitted and others have not.
  std::vector<WaitingOperation> waiting() const;
  /// The ranks that have not submitted `name`; empty when none has.
  std::vector<int> missing(const std::string& name) const;
  /// By rank: the name of what it submitted last, empty for nothing.
  const std::vector<std::string>& last() const { return last_; }

  /// Whether `rank` waits for any operation.
  bool is_busy(int rank) const { return outstanding_[static_cast<std::size_t>(rank)] != 0; }
  /// Some ranks, but not all, have joined: they count as ready for every allreduce and barrier.
  bool has_joined() const { return !joined_.empty(); }

  /// No operation waits for any rank.
  bool idle() const { return tallies_.empty(); }

 private:
  enum class Phase { kRunning, kLeaving, kEnded };
  struct Tally {
    std::vector<Signature> signatures;  ///< by rank; valid where `ready`
    std::vector<bool> ready;
    std::size_t ready_count = 0;
    std::uint64_t serial = 0;
  };

  void submit(int rank, const Request& request);
  void join(int rank);
  bool is_complete(const Tally& tally) const;
  std::vector<int> missing(const Tally& tally) const;
  void complete(const std::string& name);
  void goodbye(int rank, const Status& why);
  void drained(int rank);
  void end(Decision::Type type, Status status);
  Decision decide(const std::string& name, const Tally& tally) const;
  Decision decide_without_joined(const std::string& name, const Tally& tally) const;
  void decide_allgather(const std::string& name, const Tally& tally, Decision& decision) const;
  Decision decide_alltoall(const std::string& name, const Tally& tally) const;

  const Members members_;
  const OnAgreement on_agreement_;
  Phase phase_ = Phase::kRunning;
  std::unordered_map<std::string, Tally> tallies_;
  std::set<int> joined_;
  std::set<int> departing_;  ///< said goodbye
  std::set<int> drained_;    ///< run nothing any more
  std::vector<std::string> last_;
  std::vector<int> outstanding_;  ///< by rank
  std::uint64_t tally_count_ = 0;
  Status suspicion_;
  std::vector<Decision> decisions_;
};

/// The name of every rank's join.
inline constexpr char kJoinName[] = "<join>";

/// The disagreement between `signatures` (by rank), or "" when they agree. First extents of allgather and alltoall may
/// differ.
std::string mismatch(const std::string& name, const std::vector<Signature>& signatures, const Members& members);

}  // namespace runjob::runtime
