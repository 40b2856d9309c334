#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/collectives/shm/tuning/algorithm.hpp"
#include "runtime/collectives/shm/tuning/trial_schedule.hpp"
#include "runtime/collectives/shm/tuning/trial_times.hpp"

namespace runjob::runtime {

/// Chooses the stores with which a rank writes its small messages into shared memory. Streaming stores are two to four
/// times faster where the cores of the ranks do not share their last cache, and slower where they do; the system may
/// move a rank from one such core to another at any time. So both are tried from time to time (trial_schedule.hpp).
///
/// Each rank chooses for itself, without a message: a reader need not know how a message was written. All ranks try the
/// same stores in the same exchanges, because all count the same exchanges. So each learns how long it takes to write a
/// message with certain stores and to read messages that were written with them, and takes those with the smaller sum.
/// A rank that has nothing to read, such as a broadcast's root, measures only its writes. It takes streaming stores
/// only if they need less than half the time.
///
/// Owner    the caller owns it; it keeps no reference.
/// Threads  one at a time. It reads no clock: the caller passes times.
class StoresTuner {
 public:
  static constexpr std::size_t kLeastBytes = 1024;  ///< below, cached stores are always faster: measurements.md
  /// Exchanges of a series for each of the two stores: as many as let messages of 64 KiB write all cells once.
  static constexpr std::uint64_t kTrials = 64;
  static constexpr std::uint64_t kTimed = 16;  ///< the last ones of these
  /// The first series begins after so many exchanges, the next ones after 4, 16, 64 and 256 times as many.
  static constexpr std::uint64_t kFirstPeriod = 64;
  static constexpr std::uint64_t kPeriod = 16384;  ///< from then on a series begins after each so many exchanges

  /// The stores for this rank's message of the next exchange.
  Stores stores(std::size_t bytes) {
    if (bytes < kLeastBytes) return Stores::kCached;
    Entry& entry = at(bytes);
    return entry.schedule.is_trying() ? tried_stores(entry) : chosen_stores(entry);
  }
  /// True if the tuner asks for the time of writing a message of `bytes` bytes, or of reading messages of which the
  /// largest has so many.
  bool is_timed(std::size_t bytes) const {
    if (bytes < kLeastBytes) return false;
    const Entry& entry = at(bytes);
    return entry.schedule.is_trying() && entry.schedule.is_timed(entry.tried % kTrials);
  }
  /// Adds the time that it took to write this rank's message of `bytes` bytes until it had left this processor.
  void add_write(std::size_t bytes, std::chrono::nanoseconds time) { times(bytes).write.add(time); }
  /// Adds the time that it took this rank to read the others' messages, of at most `bytes` bytes, once all were there.
  void add_read(std::size_t bytes, std::chrono::nanoseconds time) { times(bytes).read.add(time); }

  /// A set of powers of two: sizes of messages.
  using Sizes = std::uint32_t;
  static Sizes size_of_message(std::size_t bytes) { return bytes < kLeastBytes ? 0 : Sizes{1} << index_of(bytes); }
  /// Counts an exchange that had messages of these sizes. All ranks count the same exchanges.
  void count(Sizes sizes) {
    for (; sizes != 0; sizes &= sizes - 1) count(entries_[static_cast<std::size_t>(std::countr_zero(sizes))]);
  }

 private:
  struct Times {
    TrialTimes write, read;
  };
  /// The second series begins 3 x 64 exchanges after the first: at the 256th.
  static constexpr TrialSchedule::Lengths kLengths = {.messages = kTrials,
                                                      .timed = kTimed,
                                                      .first_period = 3 * kFirstPeriod,
                                                      .last_period = kPeriod,
                                                      .trials_in_period = 2 * kTrials};
  struct Entry {
    TrialSchedule schedule{kLengths, kFirstPeriod};
    std::uint64_t tried = 0;  ///< exchanges of this series so far
    Times cached, streaming;
    bool has_new_times = false;  ///< a series has ended, and `chosen` does not follow from it yet
    Stores chosen = Stores::kCached;
  };

  static Stores tried_stores(const Entry& entry) {
    return entry.tried < kTrials ? Stores::kCached : Stores::kStreaming;
  }
  static void count(Entry& entry) {
    if (entry.schedule.is_trying()) {
      if (++entry.tried < 2 * kTrials) return;
      entry.has_new_times = true;
      return entry.schedule.settle();
    }
    entry.schedule.count();
    if (!entry.schedule.is_trying()) return;
    entry.tried = 0;
    entry.cached = entry.streaming = {};
  }
  Times& times(std::size_t bytes) {
    Entry& entry = at(bytes);
    return tried_stores(entry) == Stores::kCached ? entry.cached : entry.streaming;
  }
  /// Compares the times of a series when it has ended: a comparison within it would delay the messages that it times.
  static Stores chosen_stores(Entry& entry) {
    const auto are_enough = [](const TrialTimes& cached, const TrialTimes& streaming) {
      return std::min(cached.count(), streaming.count()) >= kTimed / 4;
    };
    const Times &cached = entry.cached, &streaming = entry.streaming;
    if (!std::exchange(entry.has_new_times, false) || !are_enough(cached.write, streaming.write)) return entry.chosen;
    const bool has_read = are_enough(cached.read, streaming.read);
    const bool is_streaming_faster =
        has_read ? streaming.write.typical() + streaming.read.typical() < cached.write.typical() + cached.read.typical()
                 : 2 * streaming.write.typical() < cached.write.typical();
    return entry.chosen = is_streaming_faster ? Stores::kStreaming : Stores::kCached;
  }
  static std::size_t index_of(std::size_t bytes) {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes / kLeastBytes)) - 1, kEntries - 1);
  }
  const Entry& at(std::size_t bytes) const { return entries_[index_of(bytes)]; }
  Entry& at(std::size_t bytes) { return entries_[index_of(bytes)]; }

  static constexpr std::size_t kEntries = 7;
  std::array<Entry, kEntries> entries_{};  ///< by power of two, from kLeastBytes on; the last one for all above
};

}  // namespace runjob::runtime
