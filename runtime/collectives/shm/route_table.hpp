#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/collectives/operation.hpp"
#include "runtime/collectives/shm/trial_times.hpp"

namespace runjob::runtime {

/// How a message that is not a small one goes from rank to rank.
enum class Way : std::uint8_t {
  kOneStep,          ///< like a small one: whole, into a cell
  kStreamedOneStep,  ///< the same, but the cell is written past the caches (streaming_copy.hpp)
  kSlots,            ///< through the ring of slots
  kStreamedSlots,    ///< the same, but the slots are written past the caches
  kRead,             ///< each rank reads the others' memory, by the kernel
  kStreamedOutput,   ///< as kSlots, but the output is written past the caches
  kStreamed          ///< as kStreamedSlots, but so is the output
};

/// Some of them.
class Ways {
 public:
  constexpr Ways(std::initializer_list<Way> ways) {
    for (const Way way : ways) add(way);
  }
  constexpr void add(Way way) { bits_ |= bit(way); }
  constexpr bool has(Way way) const { return (bits_ & bit(way)) != 0; }

 private:
  static constexpr unsigned bit(Way way) { return 1u << static_cast<unsigned>(way); }
  unsigned bits_ = 0;
};

/// Which way messages take. The fastest one depends on the processor, and on which two of its cores the ranks run just now: sharing
/// caches or not, which the system may change at any time. So for every kind of collective and power of two some messages take each
/// way, then many take the one that was the fastest, and then all are tried again: at first soon, since the first messages of a job are
/// slower than the rest, whatever their way.
/// Rank 0 tries and tells; the others remember what it told, and for how many messages.
/// A function of what it is told: no clock, no state but these.
class RouteTable {
 public:
  static constexpr std::size_t kWays = 7;
  static constexpr int kTries = 6;                      ///< of each way, at least
  static constexpr std::size_t kLargeBytes = 8u << 20;  ///< from there on fewer do: each takes milliseconds
  static constexpr int kTriesOfLarge = 2;               ///< or one, when that takes much longer than another way
  static constexpr int kFirstSettledMessages = 1;       ///< for each one that is tried
  static constexpr int kSettledMessages = 32;           ///< the same, from the fourth time on

  /// `shared_bytes`: what a rank has of shared memory for messages. A way is as fast as it will be when it has written all of it once.
  explicit RouteTable(std::size_t shared_bytes) : shared_bytes_(shared_bytes) {}

  // Rank 0:

  /// What was found out of messages of `bytes` bytes, a power of two, up to twice as many.
  struct Found {
    Kind kind = Kind::kAllreduce;
    std::size_t bytes = 0;
    Way way = Way::kSlots;

    bool operator==(const Found&) const = default;
  };
  /// Found by another job on such a machine: all is as if it had been found now, for the first time.
  void expect(const Found& found) { at(found.kind, found.bytes).expected = found.way; }
  /// What a job may expect of the next one: not what the first tries alone have shown, but of large messages, of which it may have few.
  std::vector<Found> found() const {
    std::vector<Found> all;
    for (std::size_t kind = 0; kind < entries_.size(); ++kind) {
      for (std::size_t power = 0; power < entries_[kind].size(); ++power) {
        const auto& entry = entries_[kind][power];
        if (entry && entry->found) all.push_back({static_cast<Kind>(kind), std::size_t{1} << power, *entry->found});
      }
    }
    return all;
  }

  /// What the next message tries; nothing when each of the ways that are `possible` was tried often enough. The output is written
  /// past the caches with the faster one of the two ways of writing slots only.
  std::optional<Way> next_try(Kind kind, std::size_t bytes, Ways possible) {
    const Entry& entry = at(kind, bytes);
    for (std::size_t number = 0; !entry.expected && number < kWays; ++number) {
      const auto way = static_cast<Way>(number);
      if (entry.trials[number].messages >= messages_of_way(bytes) || !possible.has(way)) continue;
      const bool streams_slots = time_of(entry, Way::kStreamedSlots) < time_of(entry, Way::kSlots);
      if (way == (streams_slots ? Way::kStreamedOutput : Way::kStreamed)) continue;
      if (bytes >= kLargeBytes && is_hopeless(entry, way)) continue;
      return way;
    }
    return std::nullopt;
  }
  /// What a try took.
  void add(Kind kind, std::size_t bytes, Way way, std::chrono::nanoseconds time) {
    Trial& trial = at(kind, bytes).trials[static_cast<std::size_t>(way)];
    const int all = messages_of_way(bytes), timed = std::max(tries_of_way(bytes), all / 2);
    if (++trial.messages > all - timed) trial.times.add(time);
  }
  /// When all that are possible have been tried.
  Way fastest(Kind kind, std::size_t bytes, Ways possible) {
    const Entry& entry = at(kind, bytes);
    Way fastest = Way::kSlots;
    for (std::size_t number = 0; number < kWays; ++number) {
      const auto way = static_cast<Way>(number);
      if (possible.has(way) && time_of(entry, way) < time_of(entry, fastest)) fastest = way;
    }
    return fastest;
  }

  // All ranks:

  /// Rank 0 has told all that this is the way of such messages from now on.
  void settle(Kind kind, std::size_t bytes, Way way) {
    Entry& entry = at(kind, bytes);
    const int times = std::min(entry.next_times, kSettledMessages);
    entry.expected.reset();
    entry.trials = {};
    if (times > kFirstSettledMessages || bytes >= kLargeBytes) entry.found = way;
    entry.settled = way;
    entry.remaining = times * static_cast<int>(kWays) * messages_of_way(bytes);
    entry.next_times = times * 4;
  }
  /// That way for one more message; nothing when rank 0 has to be asked.
  std::optional<Way> take_settled(Kind kind, std::size_t bytes) {
    Entry& entry = at(kind, bytes);
    if (!entry.settled) return std::nullopt;
    if (entry.remaining-- > 0) return entry.settled;
    entry.settled.reset();
    return std::nullopt;
  }

 private:
  using Time = std::chrono::nanoseconds;
  struct Trial {
    int messages = 0;
    TrialTimes times;  ///< of the last ones
  };
  struct Entry {
    std::optional<Way> expected;  ///< in place of all trials
    std::array<Trial, kWays> trials{};
    std::optional<Way> settled;
    int remaining = 0;  ///< messages until that ends
    int next_times = kFirstSettledMessages;
    std::optional<Way> found;  ///< the last one that was settled that tells of the next job
  };

  /// The longest of all without a trial.
  static Time time_of(const Entry& entry, Way way) {
    if (entry.expected) return *entry.expected == way ? Time::zero() : Time::max();
    const TrialTimes& times = entry.trials[static_cast<std::size_t>(way)].times;
    return times.count() == 0 ? Time::max() : times.typical();
  }
  /// Whether it has shown to take a quarter longer than another one.
  static bool is_hopeless(const Entry& entry, Way way) {
    const Time time = time_of(entry, way);
    for (std::size_t other = 0; time != Time::max() && other < kWays; ++other) {
      if (const Time its = time_of(entry, static_cast<Way>(other)); its != Time::max() && time - its > its / 4)
        return true;
    }
    return false;
  }
  static int tries_of_way(std::size_t bytes) { return bytes < kLargeBytes ? kTries : kTriesOfLarge; }
  /// With those that write all of it once, which a large one does by itself.
  int messages_of_way(std::size_t bytes) const {
    constexpr std::size_t kMost = 64;
    const std::size_t least = bytes < kLargeBytes ? 1 : 0;
    return static_cast<int>(std::clamp(shared_bytes_ >> power(bytes), least, kMost)) + tries_of_way(bytes);
  }
  static std::size_t power(std::size_t bytes) { return static_cast<std::size_t>(std::bit_width(bytes)) - 1; }
  Entry& at(Kind kind, std::size_t bytes) {
    auto& entry = entries_[static_cast<std::size_t>(kind)][power(bytes)];
    if (!entry) entry = std::make_unique<Entry>();
    return *entry;
  }

  std::size_t shared_bytes_;
  std::array<std::array<std::unique_ptr<Entry>, 64>, 8> entries_;  ///< by kind and power of two; null: no message yet
};

}  // namespace runjob::runtime
