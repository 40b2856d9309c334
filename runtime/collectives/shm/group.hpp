#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/collectives/shm/memory/parking.hpp"
#include "runtime/collectives/shm/memory/segment_view.hpp"
#include "runtime/collectives/shm/tuning/spinning.hpp"
#include "runtime/collectives/transport.hpp"

namespace runjob::runtime {

/// How a rank waits for another one before it sleeps.
struct Patience {
  std::chrono::microseconds spin{0};  ///< the longest time that it spins; SpinTime decides how much of it is used
  int yields = 0;                     ///< how often it then gives its processor away before it looks again

  /// For `local_ranks` processes that share `processors` processors. With fewer processors than ranks no rank spins.
  static Patience for_ranks(int local_ranks, double processors);
};

struct GroupOptions {
  int rank = 0;
  Patience patience;
  std::chrono::milliseconds timeout{30000};  ///< the longest wait for another rank
  std::vector<int> names = {};               ///< by rank: its rank in the job, for messages; empty: the same
  WaitingWork* work = nullptr;               ///< lent: wait() does it meanwhile; null for none
};

/// Errors  Error(kTimeout): `rank`, a rank of the job, has not arrived within `timeout`.
[[noreturn]] void throw_rank_timeout(int rank, std::chrono::milliseconds timeout);
/// Errors  Error(kPeerLost): `rank` has left.
[[noreturn]] void throw_rank_lost(int rank);

/// One rank's part in a group. A group is the set of ranks that share a segment: the ranks of a job, of a process set
/// or of one host. The rank publishes fields of its own in the segment and waits for those of other ranks.
///
/// Owner    the segment is the caller's and outlives the group; it was zero when the first rank began to use it.
/// Threads  one at a time, except for end(), leave(), cancel(), has_left() and the functions that ring: any thread.
///          Several groups, one for each rank, may live in one process.
/// Errors   waits throw Error: kTimeout naming the rank that they waited for; kAborted when the group has ended or this
///          rank has cancelled its waits; kPeerLost when the rank that they waited for has left.
class Group : public SegmentView {
 public:
  using Clock = std::chrono::steady_clock;

  Group(void* segment, const Layout& layout, const GroupOptions& options);

  int rank() const { return options_.rank; }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  /// The number that a rank has in the job, for messages.
  int name(int rank) const { return options_.names.empty() ? rank : options_.names[static_cast<std::size_t>(rank)]; }
  /// This rank's fields.
  RankFields& own() const { return fields(rank()); }

  /// Sets one of this rank's fields to `value` and wakes the threads that wait for it. A rank that sees the value also
  /// sees everything that was written before.
  void publish(Step& field, std::uint64_t value);

  /// Returns when `field`, one of rank `peer`'s, has reached `value`.
  void wait(int peer, const Step& field, std::uint64_t value) {
    if (field.load(std::memory_order_acquire) < value) wait_slowly(peer, field, value);
  }
  /// Waits in the same way without sleeping, for a short time, and not on the processor that the peer ran on. False
  /// when the field has not reached the value.
  bool look(int peer, const Step& field, std::uint64_t value);
  /// Throws the error of a wait for `peer` that took too long, or whose peer has left.
  [[noreturn]] void throw_timeout(int peer) const;
  [[noreturn]] void throw_lost(int peer) const;

  /// Wakes the threads that sleep in wait_for_round(), if there are any.
  void announce_round() { ring_if_needed(header().next_round); }
  /// Sleeps until `is_over()`, ring_next_round(), announce_round(), the end of the group, cancel() or the deadline.
  template <class IsOver>
  void wait_for_round(IsOver is_over, Clock::time_point deadline) {
    sleep_until([&] { return is_over() || has_ended() || is_cancelled(); }, header().next_round, deadline);
    check();
  }
  void ring_next_round() { ring(header().next_round); }

  /// Sleeps at `peer`'s doorbell until `is_over()`, whose loads must be sequentially consistent, or until the deadline.
  /// Throws as wait() does.
  template <class IsOver>
  void sleep_at(int peer, IsOver is_over, Clock::time_point deadline) {
    const auto is_at_end = [&] { return has_ended() || is_cancelled() || has_left(peer); };
    sleep_until([&] { return is_over() || is_at_end(); }, fields(peer).doorbell, deadline);
    if (is_over()) return spinning_.reached_after_sleep();
    check();
    if (has_left(peer)) throw_lost(peer);
  }
  void ring_at(int peer) { ring(fields(peer).doorbell); }

  /// Throws if the group has ended or this rank has cancelled its waits. For long work without waits: a rank that is
  /// ahead of the others would not notice.
  void check() const;

  /// Ends the group for all ranks: every wait of theirs, now and later, throws. Any thread; a second call has no
  /// effect.
  void end();
  /// This rank takes no part any more. The others may still read its messages; a rank that waits for more of them
  /// fails.
  void leave();
  bool has_left(int rank) const { return fields(rank).left.load(std::memory_order_seq_cst) != 0; }
  /// Ends the waits of this rank, now and later. The other ranks do not notice.
  void cancel();

 private:
  void wait_slowly(int peer, const Step& field, std::uint64_t value);
  bool work_until_reached(int peer, const Step& field, std::uint64_t value);
  void ring_all();
  bool has_ended() const { return header().ended_by.load(std::memory_order_seq_cst) != 0; }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_seq_cst); }

  const GroupOptions options_;
  Spinning spinning_;
  std::uint32_t publications_ = 0;
  std::atomic<bool> cancelled_{false};
};

}  // namespace runjob::runtime
