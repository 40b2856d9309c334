#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

/// Which of two ways large messages take: the ring of slots, or reading the other ranks' memory. For every kind of collective
/// and power of two the first calls take both in turn, and from then on the calls take the one that was faster. Rank 0 keeps the
/// table, and the others do as it says.
/// A function of the times that it is told: no clock, no state but these.
class RouteTable {
 public:
  enum class Way { kRing, kRead };

  static constexpr std::size_t kLeastBytes =
      128u << 10;                   ///< below, a system call costs more than it saves: docs/backends.md
  static constexpr int kTries = 3;  ///< of each way; the fastest counts, since the first one is cold

  /// For a message of at least kLeastBytes.
  Way next(Kind kind, std::size_t bytes) const {
    const Entry& entry = at(kind, bytes);
    if (is_open(kind, bytes)) return entry.tries[1] < entry.tries[0] ? Way::kRead : Way::kRing;
    return entry.best[1] < entry.best[0] ? Way::kRead : Way::kRing;
  }

  /// Whether the choice is yet to be made.
  bool is_open(Kind kind, std::size_t bytes) const { return at(kind, bytes).tries[1] < kTries; }

  /// What a call took that went `way`. Ignored once the choice is made.
  void add(Kind kind, std::size_t bytes, Way way, std::chrono::nanoseconds time) {
    Entry& entry = at(kind, bytes);
    const std::size_t which = way == Way::kRead ? 1 : 0;
    if (entry.tries[which] == kTries) return;
    entry.best[which] = entry.tries[which] == 0 ? time : std::min(entry.best[which], time);
    ++entry.tries[which];
  }

 private:
  struct Entry {
    std::array<int, 2> tries{};  ///< by way
    std::array<std::chrono::nanoseconds, 2> best{};
  };
  using Entries = std::array<std::array<Entry, 64>, 8>;  // by kind and power of two

  static std::size_t power(std::size_t bytes) { return static_cast<std::size_t>(std::bit_width(bytes)) - 1; }
  const Entry& at(Kind kind, std::size_t bytes) const { return entries_[static_cast<std::size_t>(kind)][power(bytes)]; }
  Entry& at(Kind kind, std::size_t bytes) { return entries_[static_cast<std::size_t>(kind)][power(bytes)]; }

  Entries entries_{};
};

}  // namespace runjob::runtime
