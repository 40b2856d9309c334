#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/collectives/shm/memory/segment_view.hpp"
#include "runtime/collectives/shm/tuning/spin_time.hpp"

namespace runjob::runtime {

/// The first part of a rank's waits: it looks at a field again and again before it gives its processor away or sleeps.
/// It learns from each wait how long that pays (spin_time.hpp). It never spins on the processor that the other rank ran
/// on; if two ranks go on sharing a processor, one of them moves to another one (processor_move.hpp).
///
/// Owner    the segment behind `view` is the caller's and outlives this object.
/// Threads  one at a time.
class Spinning {
 public:
  using Clock = std::chrono::steady_clock;

  /// `most`: the longest time of a spin; zero: this rank never spins.
  Spinning(const SegmentView& view, int rank, Clock::duration most) : view_(view), rank_(rank), time_(most) {
    taken_.reserve(static_cast<std::size_t>(view.size()));
  }

  /// Spins until `field`, one of rank `peer`'s, has reached `value`. False if it has not: the caller should wait in
  /// another way. Also ends with false when the group has ended or `cancelled` is set.
  bool wait(int peer, const Step& field, std::uint64_t value, const std::atomic<bool>& cancelled);
  /// After a wait() in vain: the field reached its value as soon as the rank had given its processor away.
  void reached_after_yield();
  /// After a wait() in vain: the field reached its value while the rank slept.
  void reached_after_sleep();

  /// Publishes the processor that this rank runs on, for the other ranks.
  void report_processor();

 private:
  bool shares_processor(int peer) const;
  bool move_away(int peer);

  const SegmentView view_;
  const int rank_;
  SpinTime time_;
  Clock::time_point spun_since_;  ///< the beginning of the last wait, if it was in vain; else the epoch
  int shared_looks_ = 0;          ///< consecutive looks on the processor that the peer ran on
  Clock::time_point next_move_;   ///< the rank does not move before this time
  std::vector<int> taken_;        ///< processors of all ranks; kept for its memory
};

}  // namespace runjob::runtime
