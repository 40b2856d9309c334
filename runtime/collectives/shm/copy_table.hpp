#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/collectives/shm/trial_times.hpp"

namespace runjob::runtime {

/// How a rank writes its small messages into shared memory: as usual, or past the caches (streaming_copy.hpp). The second one is two to
/// four times faster where the ranks' cores do not share their last cache, and slower where they do, and either may change at any
/// time. So both are tried from time to time, like the ways of larger messages (route_table.hpp), but without a word between the ranks:
/// who reads need not know. All try the same at the same time, since all count the same exchanges, so that each learns what it
/// takes to write a message so and to read one that was written so, and decides for itself. Who has nothing to read, as a broadcast's
/// root, knows one half: writing past the caches must take it less than half the time.
/// A function of what it is told: no clock, no state but these.
class CopyTable {
 public:
  static constexpr std::size_t kLeastBytes = 1024;  ///< below, the caches are always faster: docs/backends.md
  /// Exchanges that have messages of a power of two. Of each copy: as many as let messages of 64 KiB write all cells once.
  static constexpr std::uint64_t kTries = 64;
  static constexpr std::uint64_t kTimed = 16;  ///< the last ones of these
  /// Tried again after so many; at first sooner, at each power of four.
  static constexpr std::uint64_t kFirstPeriod = 64, kPeriod = 16384;

  /// Whether this rank's message of the next exchange goes past the caches.
  bool is_streamed(std::size_t bytes) {
    if (bytes < kLeastBytes) return false;
    Entry& entry = at(bytes);
    return is_tried(entry) ? entry.place >= kTries : is_better_streamed(entry);
  }
  /// Whether the table wants to know how long that takes, or reading messages of which it is the largest.
  bool is_timed(std::size_t bytes) const {
    if (bytes < kLeastBytes) return false;
    const Entry& entry = at(bytes);
    return is_tried(entry) && entry.place % kTries >= kTries - kTimed;
  }
  /// What it took this rank's message of `bytes` bytes to be written, and leave this processor.
  void add_write(std::size_t bytes, std::chrono::nanoseconds time) { times(bytes).write.add(time); }
  /// What it took this rank to read the others', of at most `bytes`, which were all there.
  void add_read(std::size_t bytes, std::chrono::nanoseconds time) { times(bytes).read.add(time); }

  /// A set of messages' powers of two.
  using Sizes = std::uint32_t;
  static Sizes size_of_message(std::size_t bytes) { return bytes < kLeastBytes ? 0 : Sizes{1} << place_of(bytes); }
  /// On all ranks alike: an exchange has ended, in which there were messages of these.
  void count(Sizes sizes) {
    for (; sizes != 0; sizes &= sizes - 1) count(entries_[static_cast<std::size_t>(std::countr_zero(sizes))]);
  }

 private:
  struct Times {
    TrialTimes write, read;
  };
  struct Entry {
    std::uint64_t exchanges = 0;
    std::uint64_t place = 2 * kTries;  ///< how many of them have been in this period
    Times plain, streamed;
    bool is_new = false;  ///< there are times that have not been looked at
    bool is_streamed = false;
  };

  static void count(Entry& entry) {
    ++entry.place;
    if (++entry.exchanges % kPeriod != 0 && !is_early_period(entry.exchanges)) return;
    entry.place = 0;
    entry.plain = entry.streamed = {};
    entry.is_new = true;
  }
  static bool is_tried(const Entry& entry) { return entry.place < 2 * kTries; }
  Times& times(std::size_t bytes) {
    Entry& entry = at(bytes);
    return entry.place < kTries ? entry.plain : entry.streamed;
  }
  /// Looks at new times when their trials are over: in between, that would take some time itself.
  static bool is_better_streamed(Entry& entry) {
    const auto are_enough = [](const TrialTimes& plain, const TrialTimes& streamed) {
      return std::min(plain.count(), streamed.count()) >= kTimed / 4;
    };
    const Times &plain = entry.plain, &streamed = entry.streamed;
    if (!std::exchange(entry.is_new, false) || !are_enough(plain.write, streamed.write)) return entry.is_streamed;
    if (are_enough(plain.read, streamed.read)) {
      entry.is_streamed =
          streamed.write.typical() + streamed.read.typical() < plain.write.typical() + plain.read.typical();
    } else {
      entry.is_streamed = 2 * streamed.write.typical() < plain.write.typical();
    }
    return entry.is_streamed;
  }
  /// Whether it is a power of four from kFirstPeriod on, but less than kPeriod.
  static bool is_early_period(std::uint64_t exchanges) {
    return exchanges >= kFirstPeriod && exchanges < kPeriod && std::has_single_bit(exchanges) &&
           std::countr_zero(exchanges) % 2 == 0;
  }
  static std::size_t place_of(std::size_t bytes) {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes / kLeastBytes)) - 1, kEntries - 1);
  }
  const Entry& at(std::size_t bytes) const { return entries_[place_of(bytes)]; }
  Entry& at(std::size_t bytes) { return entries_[place_of(bytes)]; }

  static constexpr std::size_t kEntries = 7;
  std::array<Entry, kEntries> entries_{};  // by power of two, from kLeastBytes on; the last one for all above
};

}  // namespace runjob::runtime
