#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// How a message too large for one step goes from rank to rank.
enum class Way : std::uint8_t {
  kSlots,          ///< through the ring of slots
  kStreamedSlots,  ///< the same, but what goes into slots is written past the caches (streaming_copy.hpp)
  kRead            ///< each rank reads the others' memory, by the kernel
};

/// Which way messages take. The fastest one depends on the processor, and on which two of its cores the ranks run just now: sharing
/// caches or not, which the system may change at any time. So for every kind of collective and power of two some messages take each
/// way, then many take the one that was the fastest, and then all are tried again: at first soon, since the first messages of a job are
/// slower than the rest, whatever their way.
/// Rank 0 tries and tells; the others remember what it told, and for how many messages.
/// A function of what it is told: no clock, no state but these.
class RouteTable {
 public:
  static constexpr std::size_t kWays = 3;
  static constexpr std::size_t kLeastReadBytes = 128u << 10;  ///< below, a system call costs too much: docs/backends.md
  static constexpr int kTries = 3;                            ///< of each way; the fastest one counts
  static constexpr std::size_t kLargeBytes = 8u << 20;        ///< from there on fewer do: each takes milliseconds
  static constexpr int kTriesOfLarge = 2;
  static constexpr int kFirstSettledMessages = 2;  ///< for each one that is tried
  static constexpr int kSettledMessages = 32;      ///< the same, from the third time on

  /// `slots_bytes`: of all of a rank's slots. A way that uses slots is as fast as it will be when it has written them all once.
  explicit RouteTable(std::size_t slots_bytes) : slots_bytes_(slots_bytes) {}

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

  /// What the next message tries; nothing when each way was tried often enough. Reading takes part where it is possible.
  std::optional<Way> next_try(Kind kind, std::size_t bytes, bool can_read) const {
    const Entry& entry = at(kind, bytes);
    for (std::ptrdiff_t way = 0; way < number_of_ways(bytes, can_read); ++way) {
      if (entry.messages[static_cast<std::size_t>(way)] < messages_of_way(bytes)) return static_cast<Way>(way);
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
  /// When all have been tried.
  Way fastest(Kind kind, std::size_t bytes, bool can_read) const {
    const auto first = at(kind, bytes).best.begin();
    return static_cast<Way>(std::min_element(first, first + number_of_ways(bytes, can_read)) - first);
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

  static std::ptrdiff_t number_of_ways(std::size_t bytes, bool can_read) {
    return can_read && bytes >= kLeastReadBytes ? 3 : 2;
  }
  static int tries_of_way(std::size_t bytes) { return bytes < kLargeBytes ? kTries : kTriesOfLarge; }
  /// With those that write all slots once, which a large one does by itself.
  int messages_of_way(std::size_t bytes) const {
    constexpr std::size_t kMost = 64;
    const std::size_t least = bytes < kLargeBytes ? 1 : 0;
    return static_cast<int>(std::clamp(slots_bytes_ >> power(bytes), least, kMost)) + tries_of_way(bytes);
  }
  static std::size_t power(std::size_t bytes) { return static_cast<std::size_t>(std::bit_width(bytes)) - 1; }
  const Entry& at(Kind kind, std::size_t bytes) const { return entries_[static_cast<std::size_t>(kind)][power(bytes)]; }
  Entry& at(Kind kind, std::size_t bytes) { return entries_[static_cast<std::size_t>(kind)][power(bytes)]; }

  std::size_t slots_bytes_;
  Entries entries_{};
};

}  // namespace runjob::runtime
