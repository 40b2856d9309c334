#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/collectives/operation.hpp"

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
  static constexpr int kTries = 3;                      ///< of each way; the fastest one counts
  static constexpr std::size_t kLargeBytes = 8u << 20;  ///< from there on fewer do: each takes milliseconds
  static constexpr int kTriesOfLarge = 2;
  static constexpr int kFirstSettledMessages = 1;  ///< for each one that is tried
  static constexpr int kSettledMessages = 32;      ///< the same, from the third time on

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
  void expect(const Found& found) {
    Entry& entry = at(found.kind, found.bytes);
    entry.messages.fill(std::numeric_limits<int>::max());
    entry.best.fill(std::chrono::nanoseconds::max());
    entry.best[static_cast<std::size_t>(found.way)] = {};
  }
  /// What a job may expect of the next one: not what the first tries alone have shown.
  std::vector<Found> found() const {
    std::vector<Found> all;
    for (std::size_t kind = 0; kind < entries_.size(); ++kind) {
      for (std::size_t power = 0; power < entries_[kind].size(); ++power) {
        if (const auto way = entries_[kind][power].found)
          all.push_back({static_cast<Kind>(kind), std::size_t{1} << power, *way});
      }
    }
    return all;
  }

  /// What the next message tries; nothing when each of the ways that are `possible` was tried often enough. The output is written
  /// past the caches with the faster one of the two ways of writing slots only.
  std::optional<Way> next_try(Kind kind, std::size_t bytes, Ways possible) const {
    const Entry& entry = at(kind, bytes);
    for (std::size_t number = 0; number < kWays; ++number) {
      const auto way = static_cast<Way>(number);
      if (entry.messages[number] >= messages_of_way(bytes) || !possible.has(way)) continue;
      if (way == Way::kStreamedOutput && is_faster(entry, Way::kStreamedSlots, Way::kSlots)) continue;
      if (way == Way::kStreamed && !is_faster(entry, Way::kStreamedSlots, Way::kSlots)) continue;
      return way;
    }
    return std::nullopt;
  }
  /// What a try took.
  void add(Kind kind, std::size_t bytes, Way way, std::chrono::nanoseconds time) {
    Entry& entry = at(kind, bytes);
    const auto which = static_cast<std::size_t>(way);
    const int counted = ++entry.messages[which] - (messages_of_way(bytes) - tries_of_way(bytes));
    if (counted >= 1) entry.best[which] = counted == 1 ? time : std::min(entry.best[which], time);
  }
  /// When all that are possible have been tried.
  Way fastest(Kind kind, std::size_t bytes, Ways possible) const {
    const Entry& entry = at(kind, bytes);
    Way fastest = Way::kSlots;
    for (std::size_t number = 0; number < kWays; ++number) {
      const auto way = static_cast<Way>(number);
      if (entry.messages[number] > 0 && possible.has(way) && is_faster(entry, way, fastest)) fastest = way;
    }
    return fastest;
  }

  // All ranks:

  /// Rank 0 has told all that this is the way of such messages from now on.
  void settle(Kind kind, std::size_t bytes, Way way) {
    Entry& entry = at(kind, bytes);
    const int times = std::min(entry.next_times, kSettledMessages);
    const std::optional<Way> found = times > kFirstSettledMessages ? way : entry.found;
    entry = {};
    entry.found = found;
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
  struct Entry {
    std::array<int, kWays> messages{};  ///< tried so far, by way
    std::array<std::chrono::nanoseconds, kWays> best{};
    std::optional<Way> settled;
    int remaining = 0;  ///< messages until that ends
    int next_times = kFirstSettledMessages;
    std::optional<Way> found;  ///< the last one that was settled, but for the first
  };
  using Entries = std::array<std::array<Entry, 64>, 8>;  // by kind and power of two

  static bool is_faster(const Entry& entry, Way way, Way than) {
    return entry.best[static_cast<std::size_t>(way)] < entry.best[static_cast<std::size_t>(than)];
  }
  static int tries_of_way(std::size_t bytes) { return bytes < kLargeBytes ? kTries : kTriesOfLarge; }
  /// With those that write all of it once, which a large one does by itself.
  int messages_of_way(std::size_t bytes) const {
    constexpr std::size_t kMost = 64;
    const std::size_t least = bytes < kLargeBytes ? 1 : 0;
    return static_cast<int>(std::clamp(shared_bytes_ >> power(bytes), least, kMost)) + tries_of_way(bytes);
  }
  static std::size_t power(std::size_t bytes) { return static_cast<std::size_t>(std::bit_width(bytes)) - 1; }
  const Entry& at(Kind kind, std::size_t bytes) const { return entries_[static_cast<std::size_t>(kind)][power(bytes)]; }
  Entry& at(Kind kind, std::size_t bytes) { return entries_[static_cast<std::size_t>(kind)][power(bytes)]; }

  std::size_t shared_bytes_;
  Entries entries_{};
};

}  // namespace runjob::runtime
