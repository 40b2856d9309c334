#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/collectives/hierarchical/rounds/message_block.hpp"
#include "runtime/collectives/operation.hpp"
#include "runtime/collectives/shm/memory/layout.hpp"

namespace runjob::runtime {

/// The messages of other hosts' ranks in rounds, and the progress of these ranks, in the memory that the ranks of a
/// host share. Its words are zero at first. The host's leader writes it, with one exception: given().
///
/// Each rank's message has two places, used in turn. A leader writes a message of round t over that of t - 2 when
/// another host has begun t. By then all ranks of all hosts have given their message of t - 1, and so have read those
/// of t - 2.
/// Threads  any. The messages of a round may be read once completed() has reached it.
class FarBoard {
 public:
  FarBoard(void* memory, int ranks)
      : memory_(static_cast<std::byte*>(memory)), ranks_(static_cast<std::size_t>(ranks)) {}

  /// The longest message that a job of so many ranks may have. It is bounded so that the memory of all messages is.
  static std::size_t most_bytes(int ranks);
  /// The most bytes of an operation's data that a message should have. Every rank gets the data of all ranks, so there
  /// is a limit for all together beside that for each.
  static std::size_t most_data_bytes(int ranks, Kind kind);
  static std::size_t words_bytes(int ranks);
  static std::size_t bytes(int ranks);

  int ranks() const { return static_cast<int>(ranks_); }

  /// The last round of which all messages have come.
  Step& completed() const { return words().completed; }
  /// The last round that another host has begun, as far as this host knows.
  Step& begun() const { return words().begun; }
  /// The number of ranks of other hosts that have left, as far as this host knows.
  Step& departures() const { return words().departures; }
  /// The last round whose message a rank has given, as far as this host knows. The ranks of this host write their own.
  Step& given(int rank) const { return table()[rank]; }
  /// 0, or 1 + the last round whose message a rank of another host had given when it left.
  Step& left_after(int rank) const { return table()[ranks_ + static_cast<std::size_t>(rank)]; }
  /// Changes while a rank moves bytes of an operation's data to or from other hosts. The ranks of this host count their
  /// own moves here.
  Step& moves(int rank) const { return reinterpret_cast<Step*>(memory_ + moves_at(ranks()))[rank]; }

  /// Writes a message. The place of its part that is not sent may have any bytes.
  void put(std::uint64_t round, int rank, const RoundMessage& message) const;
  std::uint32_t tag(std::uint64_t round, int rank) const { return slot(round, rank).tag; }
  std::span<const std::byte> message(std::uint64_t round, int rank) const {
    const Slot& found = slot(round, rank);
    return {reinterpret_cast<const std::byte*>(&found + 1), found.bytes};
  }

 private:
  static constexpr std::size_t kPlaces = 2;

  struct Words {
    alignas(kLineBytes) Step completed;
    alignas(kLineBytes) Step begun;
    Step departures;
  };
  struct Slot {
    std::uint32_t bytes, tag;
  };

  static std::size_t slot_bytes(int ranks);
  static std::size_t moves_at(int ranks);

  Words& words() const { return *reinterpret_cast<Words*>(memory_); }
  Step* table() const { return reinterpret_cast<Step*>(memory_ + sizeof(Words)); }
  Slot& slot(std::uint64_t round, int rank) const {
    const std::size_t index = round % kPlaces * ranks_ + static_cast<std::size_t>(rank);
    return *reinterpret_cast<Slot*>(memory_ + words_bytes(ranks()) + index * slot_bytes(ranks()));
  }

  std::byte* memory_;
  std::size_t ranks_;
};

}  // namespace runjob::runtime
