#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace runjob::runtime {

/// Where things are in the segment that a host's ranks share. Everything has one writer, its rank, but for what is said
/// otherwise; a rank that dies leaves nothing locked. All begins as zero bytes, and steps are counted from 1.

/// Words that different ranks write are this far apart: processors fetch lines of 64 bytes in pairs.
inline constexpr std::size_t kLineBytes = 128;

using Step = std::atomic<std::uint64_t>;
static_assert(Step::is_always_lock_free && sizeof(Step) == 8);

/// The steps of one rank in the exchange of small messages, and with the word its payload, in one cache line.
struct alignas(kLineBytes) FlagLine {
  static constexpr std::size_t kPayloadBytes = 56;
  Step given;
  std::byte payload[kPayloadBytes];
};

/// How far one rank has come in the ring of large messages.
struct alignas(kLineBytes) Progress {
  Step filled;   ///< its slot of this step has what others need of its input
  Step reduced;  ///< ... and its part of the result
  Step done;     ///< it will not look at any slot of this step again
};

/// Where those sleep who wait for something. Written by all.
struct alignas(kLineBytes) Doorbell {
  std::atomic<std::uint32_t> rings;     ///< the futex
  std::atomic<std::uint32_t> sleepers;  ///< at least as many as there are
};

struct RankWords {
  static constexpr std::size_t kFlags = 2;  ///< small_exchange.hpp says why two are enough
  FlagLine flags[kFlags];
  Progress progress;
  Doorbell doorbell;                     ///< of those who wait for this rank
  std::atomic<std::uint32_t> left;       ///< not zero: it takes no part any more; what it has given stays
  std::atomic<std::uint32_t> processor;  ///< 1 + the one that it ran on when it last said so; 0: not known
};

struct SegmentHeader {
  /// 0, or 1 + the rank that ended everything; written by the first one that does.
  alignas(kLineBytes) std::atomic<std::uint32_t> ended_by;
  Doorbell next_round;       ///< of those who wait for any rank to begin the next round of messages
  std::uint64_t slot_bytes;  ///< what is used of each slot; rank 0's, before the others have the segment
};

/// The sizes of a segment for `size` ranks: header, words of every rank, cells of every rank, slots of every rank,
/// a board.
class Layout {
 public:
  static constexpr std::size_t kSlots = 8;  ///< of a rank's ring: together larger than a core's own caches

  explicit Layout(int size) : Layout(size, cell_bytes_for(index(size)), slot_bytes_for(index(size))) {}
  Layout(int size, std::size_t cell_bytes, std::size_t slot_bytes, std::size_t board_bytes = 0)
      : size_(static_cast<std::size_t>(size)),
        cell_bytes_(round_up(cell_bytes)),
        half_bytes_(
            std::bit_floor(std::clamp<std::size_t>(kMostCellsBytes / 2 / size_, cell_bytes_ * 2, cell_bytes_ * 32))),
        slot_bytes_(round_up(slot_bytes)),
        board_bytes_(round_up(board_bytes)) {}

  /// The same with slots of `bytes` bytes, unless they are smaller: for a segment with this layout.
  Layout with_slots(std::size_t bytes) const {
    return {size(), cell_bytes_, std::clamp(bytes, kPage, slot_bytes_), board_bytes_};
  }
  /// How large slots should be at most for `size` ranks on so many processors: what the ranks of a processor write and read should stay in
  /// its caches.
  static std::size_t slot_bytes_on(double processors, int size) {
    const double each = processors * static_cast<double>(kRingBytesOfProcessor / kSlots) / size;
    return each < static_cast<double>(kMostSlotBytes) ? std::max(static_cast<std::size_t>(each), kLeastSlotBytes)
                                                      : kMostSlotBytes;
  }

  int size() const { return static_cast<int>(size_); }
  /// The largest small message.
  std::size_t cell_bytes() const { return cell_bytes_; }
  /// The largest message that there is room for in a cell.
  std::size_t most_cell_bytes() const { return std::max(cell_bytes_, half_bytes_ / 2); }
  /// Of the cells of a rank.
  std::size_t cells_bytes() const { return 2 * half_bytes_; }
  /// The largest piece of a large one.
  std::size_t slot_bytes() const { return slot_bytes_; }

  std::size_t words(int rank) const { return sizeof(SegmentHeader) + index(rank) * sizeof(RankWords); }
  /// Where a small message of `bytes` bytes lies. Two steps in turn have places that do not meet, whatever their messages' sizes; and
  /// the places of messages of a size go round.
  std::size_t cell(int rank, std::uint64_t step, std::size_t bytes) const {
    const std::size_t half = step % 2, turn = step / 2 * std::bit_ceil(std::max(bytes, kLineBytes));
    return first_cell() + (index(rank) * 2 + half) * half_bytes_ + (turn & (half_bytes_ - 1));
  }
  std::size_t slot(int rank, std::size_t number) const {
    return first_slot() + (index(rank) * kSlots + number) * slot_bytes_;
  }
  /// Room for what a host hears of others (far_board.hpp), behind everything else.
  std::size_t board() const { return first_slot() + size_ * kSlots * slot_bytes_; }
  std::size_t bytes() const { return board() + board_bytes_; }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kMostCellBytes = 64u << 10;   // measured: docs/backends.md
  static constexpr std::size_t kMostSlotBytes = 256u << 10;  // measured: docs/backends.md
  static constexpr std::size_t kLeastSlotBytes = 4 * kPage;
  static constexpr std::size_t kRingBytesOfProcessor = 4u << 20;  // measured: docs/backends.md
  static constexpr std::size_t kMostCellsBytes = 16u << 20;       // of all ranks
  static constexpr std::size_t kMostRingBytes = 64u << 20;        // so that hundreds of ranks do not fill the memory

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static constexpr std::size_t cell_bytes_for(std::size_t size) {
    return std::max(kPage, round_up(kMostCellBytes * 2 / size));
  }
  static constexpr std::size_t slot_bytes_for(std::size_t size) {
    return std::clamp(round_up(kMostRingBytes / (size * kSlots)), kLeastSlotBytes, kMostSlotBytes);
  }
  static constexpr std::size_t round_up(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
  std::size_t first_cell() const { return round_up(words(size())); }
  std::size_t first_slot() const { return first_cell() + size_ * 2 * half_bytes_; }

  std::size_t size_, cell_bytes_;
  std::size_t half_bytes_;  ///< for the small messages of every other step: a power of two
  std::size_t slot_bytes_, board_bytes_ = 0;
};

}  // namespace runjob::runtime
