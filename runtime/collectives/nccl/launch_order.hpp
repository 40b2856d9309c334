#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/mutex.hpp"

namespace runjob::runtime::nccl {

/// One order for the launches of several communicators on a GPU, which is the same on all of their ranks: NCCL needs
/// it, because a kernel that waits for other ranks may keep theirs from starting.
///
/// Each rank proposes a time for an operation that all ranks of its communicator have agreed on. They exchange their
/// proposals, and the latest one counts; the exchange is the caller's. A rank launches an operation when no other one
/// of this GPU can get an earlier time.
///
/// Order    An operation waits only for operations that all of their ranks have agreed on, and only for those with an
///          earlier time. So there is no circle of operations that wait for each other.
/// Owner    the order outlives its turns.
/// Threads  any; each waits for its own operations.
/// Errors   none.
/// Source   Skeen's ordered multicast, in Birman & Joseph, "Reliable communication in the presence of failures", ACM
///          TOCS 5 (1987), section 4.
class LaunchOrder {
 public:
  using Time = std::uint64_t;

  /// One operation, from the proposal of its time to its launch. Later operations wait until it is destroyed, which the
  /// caller does when it has launched the operation or given it up.
  class Turn {
   public:
    /// Proposes a time. `ranks` are those of the communicator. No two communicators have the same ranks, so they break
    /// the tie between equal times.
    Turn(LaunchOrder& order, const std::vector<int>& ranks);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    Time proposal() const { return proposal_; }
    /// Blocks until the turns of all operations with an earlier time than `agreed` are over. Returns false if
    /// `is_given_up`, which is called every 10 ms or more often, returns true before. `agreed`: the latest proposal of
    /// all ranks.
    bool wait(Time agreed, const std::function<bool()>& is_given_up);

   private:
    LaunchOrder& order_;
    std::uint64_t number_ = 0;
    Time proposal_ = 0;
  };

 private:
  struct Waiting {
    Time time = 0;  ///< the proposal, or the time that was agreed on
    std::vector<int> ranks;
  };

  bool is_first(std::uint64_t number) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  ConditionVariable changed_;
  Time now_ GUARDED_BY(mutex_) = 0;
  std::uint64_t count_ GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Waiting> waiting_ GUARDED_BY(mutex_);  ///< by their numbers
};

}  // namespace runjob::runtime::nccl
