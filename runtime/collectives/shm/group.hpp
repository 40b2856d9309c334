#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/collectives/shm/layout.hpp"
#include "runtime/collectives/shm/parking.hpp"
#include "runtime/collectives/shm/spin_time.hpp"

namespace runjob::runtime {

/// How a rank waits for another one before it sleeps.
struct Patience {
  std::chrono::microseconds spin{0};  ///< the longest time of looking again and again; SpinTime says how it is used
  int yields = 0;                     ///< then, how often the processor is given away before another look

  /// For `local_ranks` processes that share `processors`. Without one for each, nobody spins.
  static Patience for_ranks(int local_ranks, double processors);
};

struct GroupOptions {
  int rank = 0;
  Patience patience;
  std::chrono::milliseconds timeout{30000};  ///< how long a wait may take
  std::vector<int> names = {};               ///< the ranks' numbers in their job; empty: the same as here
};

/// Errors  Error(kTimeout): `rank`, its number in the job, has not come within `timeout`.
[[noreturn]] void throw_rank_timeout(int rank, std::chrono::milliseconds timeout);
/// Errors  Error(kPeerLost).
[[noreturn]] void throw_rank_lost(int rank);

/// One rank's part in a group of ranks that share a segment: it publishes words of its own and waits for others'.
///
/// Owner    the segment is the caller's and outlives the group; it was zero when the first rank came.
/// Threads  one at a time, but end(), leave() and cancel() from any. Several groups, one for each rank, may live in one process.
/// Errors   waits throw Error: kTimeout naming the rank waited for; kAborted once the group has ended or this rank has cancelled
///          its waits; kPeerLost when the rank waited for has left.
class Group {
 public:
  using Clock = std::chrono::steady_clock;

  Group(void* segment, const Layout& layout, const GroupOptions& options);

  int rank() const { return options_.rank; }
  int size() const { return layout_.size(); }
  const Layout& layout() const { return layout_; }

  RankWords& words(int rank) const { return *reinterpret_cast<RankWords*>(segment_ + layout_.words(rank)); }
  RankWords& own() const { return words(rank()); }
  std::byte* cell(int rank, std::uint64_t step, std::size_t bytes) const {
    return segment_ + layout_.cell(rank, step, bytes);
  }
  std::byte* slot(int rank, std::size_t number) const { return segment_ + layout_.slot(rank, number); }

  /// Tells everybody that one of this rank's own words has come to `value`; what was written before is seen by those who
  /// see it.
  void publish(Step& word, std::uint64_t value);

  /// Returns when `word`, one of rank `peer`'s, has come to `value`.
  void wait(int peer, const Step& word, std::uint64_t value) {
    if (word.load(std::memory_order_acquire) < value) wait_slowly(peer, word, value);
  }
  /// The same, but without the group's timeout; false when `deadline` was first.
  bool wait_until(int peer, const Step& word, std::uint64_t value, Clock::time_point deadline) {
    return look(peer, word, value) || sleep(peer, word, value, deadline);
  }
  /// The first part of that: looks again and again for a short time, but not on the processor that the peer ran on.
  bool look(int peer, const Step& word, std::uint64_t value);
  /// The second.
  bool sleep(int peer, const Step& word, std::uint64_t value, Clock::time_point deadline);
  [[noreturn]] void throw_timeout(int peer) const;
  [[noreturn]] void throw_lost(int peer) const;
  std::chrono::milliseconds timeout() const { return options_.timeout; }

  /// Rings when somebody sleeps until the next round of messages begins.
  void announce_round() { ring_if_needed(header().next_round); }
  /// Sleeps until `is_over()`, a ring_next_round(), announce_round(), the group's end, cancel() or the deadline.
  template <class IsOver>
  void wait_for_round(IsOver is_over, Clock::time_point deadline) {
    sleep_until([&] { return is_over() || has_ended() || is_cancelled(); }, header().next_round, deadline);
    check();
  }
  void ring_next_round() { ring(header().next_round); }

  /// Sleeps at `peer`'s doorbell until `is_over()`, whose loads are sequentially consistent; at most until the deadline. Throws as
  /// wait() does.
  template <class IsOver>
  void sleep_at(int peer, IsOver is_over, Clock::time_point deadline) {
    const auto is_at_end = [&] { return has_ended() || is_cancelled() || has_left(peer); };
    sleep_until([&] { return is_over() || is_at_end(); }, words(peer).doorbell, deadline);
    if (is_over()) return learn_from_sleep();
    check();
    if (has_left(peer)) throw_lost(peer);
  }
  void ring_at(int peer) { ring(words(peer).doorbell); }

  /// Throws when the group has ended. For work without waits: a rank that is ahead of the others would not notice.
  void check() const;

  /// Ends the group for all its ranks: every wait of theirs, now and later, throws. Any thread; more than once does no harm.
  void end();
  /// This rank takes no part any more. The others may still read what it has given; who waits for more of it fails.
  void leave();
  bool has_left(int rank) const { return words(rank).left.load(std::memory_order_seq_cst) != 0; }
  /// Ends the waits of this rank, now and later; the others notice nothing.
  void cancel();

 private:
  void wait_slowly(int peer, const Step& word, std::uint64_t value);
  bool spin(int peer, const Step& word, std::uint64_t value);
  void say_processor();
  bool shares_processor(int peer) const;
  bool part_from(int peer);
  void learn_from_sleep();
  int name(int rank) const { return options_.names.empty() ? rank : options_.names[static_cast<std::size_t>(rank)]; }
  bool has_ended() const { return header().ended_by.load(std::memory_order_seq_cst) != 0; }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_seq_cst); }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(segment_); }

  std::byte* const segment_;
  const Layout layout_;
  const GroupOptions options_;
  SpinTime spin_;
  Clock::time_point spun_since_;  ///< when the last look that was in vain began; nothing: there was none
  std::uint32_t publications_ = 0;
  int shared_looks_ = 0;         ///< in turn, on the processor that the peer ran on
  Clock::time_point next_move_;  ///< not before
  std::atomic<bool> cancelled_{false};
};

}  // namespace runjob::runtime
