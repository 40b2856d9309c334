#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace runjob::runtime {

/// The layout of the segment that the ranks of a host share, and the types of its fields.
///
/// Owner    each field has exactly one writer, the rank that owns it, unless noted. So a rank that dies leaves nothing
///          locked.
/// Life     a segment begins as zero bytes. Steps are counted from 1.
///
/// Terms    a cell holds a small message, or a whole message in one step; each rank has a few in turn. A ring cell
///          holds a piece of a large message; each rank has a ring of them. A step is the sequence number of an
///          exchange.

/// The distance of fields with different writers. Processors fetch lines of 64 bytes in pairs.
inline constexpr std::size_t kLineBytes = 128;

/// A field that its writer raises from step to step.
using Step = std::atomic<std::uint64_t>;
static_assert(Step::is_always_lock_free && sizeof(Step) == 8);

/// A rank's flag in the exchange of small messages. A short message lies in the cache line of its flag.
struct alignas(kLineBytes) FlagLine {
  static constexpr std::size_t kPayloadBytes = 56;
  Step given;  ///< the rank's message of this step is complete
  std::byte payload[kPayloadBytes];
};

/// The progress of a rank in the exchange of large messages.
struct alignas(kLineBytes) Progress {
  Step filled;   ///< the rank's ring cell of this step has the part of its input that others need
  Step reduced;  ///< the rank's ring cell of this step has the rank's part of the result
  Step done;     ///< the rank does not read any ring cell of this step any more
};

/// The futex at which threads sleep until another rank has done something. All ranks write both fields.
struct alignas(kLineBytes) Doorbell {
  std::atomic<std::uint32_t> rings;     ///< the futex: how often it has rung
  std::atomic<std::uint32_t> sleepers;  ///< at least as many as there are threads asleep
};

/// The time at which a rank gave its message of a round. Written while SegmentHeader::notes_times is set.
/// Units  nanoseconds of the steady clock, which is the same for all processes of a host.
struct GivenTime {
  std::atomic<std::uint64_t> round;  ///< the round to which the time belongs
  std::atomic<std::int64_t> ns;
};

/// The fields of one rank.
struct RankFields {
  static constexpr std::size_t kFlags = 2;  ///< small_exchange.hpp explains why two are enough
  FlagLine flags[kFlags];
  Progress progress;
  Doorbell doorbell;                     ///< for threads that wait for this rank
  std::atomic<std::uint32_t> left;       ///< not zero: the rank takes no part any more; its messages stay
  std::atomic<std::uint32_t> processor;  ///< 1 + the processor that the rank has reported last; 0: unknown
  GivenTime given_times[kFlags];         ///< of rounds in turn
};

/// The fields that belong to no rank.
struct SegmentHeader {
  /// 0, or 1 + the rank that has ended the group. Written by the first rank that ends it.
  alignas(kLineBytes) std::atomic<std::uint32_t> ended_by;
  /// Not zero: each rank notes when it gives its message of a round. Written by the rank that wants the times.
  std::atomic<std::uint32_t> notes_times;
  Doorbell next_round;  ///< for threads that wait until any rank begins the next round of messages
  /// How much of each ring cell is used. Written by rank 0 before the other ranks have the segment.
  std::uint64_t ring_cell_bytes;
};

/// The sizes and offsets of a segment for `size` ranks: the header, then the fields, the cells and the ring cells of
/// every rank, then the board. A value; it never touches the memory.
/// Units    bytes; offsets are from the beginning of the segment.
class Layout {
 public:
  static constexpr std::size_t kRingCells = 8;  ///< of a rank: together they are larger than a core's own caches

  explicit Layout(int size) : Layout(size, cell_bytes_for(index(size)), ring_cell_bytes_for(index(size))) {}
  Layout(int size, std::size_t cell_bytes, std::size_t ring_cell_bytes, std::size_t board_bytes = 0)
      : size_(static_cast<std::size_t>(size)),
        cell_bytes_(round_up(cell_bytes)),
        half_bytes_(
            std::bit_floor(std::clamp<std::size_t>(kMostCellsBytes / 2 / size_, cell_bytes_ * 2, cell_bytes_ * 32))),
        ring_cell_bytes_(round_up(ring_cell_bytes)),
        board_bytes_(round_up(board_bytes)) {}

  /// The same layout with ring cells of at most `bytes` bytes. It fits a segment that was made with this layout.
  Layout with_ring_cells(std::size_t bytes) const {
    return {size(), cell_bytes_, std::clamp(bytes, kPage, ring_cell_bytes_), board_bytes_};
  }
  /// The size of ring cells for `size` ranks on `processors` processors: as large as possible while everything that the
  /// ranks of a processor write and read stays in its caches.
  static std::size_t ring_cell_bytes_on(double processors, int size) {
    const double each =
        processors * static_cast<double>(kRingBytesOfProcessor) / static_cast<double>(kRingCells) / size;
    return each < static_cast<double>(kMostRingCellBytes)
               ? std::max(static_cast<std::size_t>(each), kLeastRingCellBytes)
               : kMostRingCellBytes;
  }

  int size() const { return static_cast<int>(size_); }
  /// The size of the largest small message.
  std::size_t cell_bytes() const { return cell_bytes_; }
  /// The size of the largest message that fits a cell.
  std::size_t most_cell_bytes() const { return std::max(cell_bytes_, half_bytes_ / 2); }
  /// The size of all cells of a rank together.
  std::size_t cells_bytes() const { return 2 * half_bytes_; }
  /// The size of the largest piece of a large message.
  std::size_t ring_cell_bytes() const { return ring_cell_bytes_; }

  std::size_t fields(int rank) const { return sizeof(SegmentHeader) + index(rank) * sizeof(RankFields); }
  /// The cell of a message of `bytes` bytes. Cells of two steps in turn do not overlap, whatever the sizes of their
  /// messages. Messages of one size use all of the memory in turn before they use the same cell again.
  std::size_t cell(int rank, std::uint64_t step, std::size_t bytes) const {
    const std::size_t half = step % 2, turn = step / 2 * std::bit_ceil(std::max(bytes, kLineBytes));
    return first_cell() + (index(rank) * 2 + half) * half_bytes_ + (turn & (half_bytes_ - 1));
  }
  std::size_t ring_cell(int rank, std::size_t number) const {
    return first_ring_cell() + (index(rank) * kRingCells + number) * ring_cell_bytes_;
  }
  /// The room for messages of other hosts (far_board.hpp), behind everything else.
  std::size_t board() const { return first_ring_cell() + size_ * kRingCells * ring_cell_bytes_; }
  std::size_t bytes() const { return board() + board_bytes_; }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kMostCellBytes = 64u << 10;       // measured: docs/developers/measurements.md
  static constexpr std::size_t kMostRingCellBytes = 256u << 10;  // measured: docs/developers/measurements.md
  static constexpr std::size_t kLeastRingCellBytes = 4 * kPage;
  static constexpr std::size_t kRingBytesOfProcessor = 4u << 20;  // measured: docs/developers/measurements.md
  static constexpr std::size_t kMostCellsBytes = 16u << 20;       // of all ranks
  static constexpr std::size_t kMostRingBytes = 64u << 20;        // so that hundreds of ranks do not fill the memory

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static constexpr std::size_t cell_bytes_for(std::size_t size) {
    return std::max(kPage, round_up(kMostCellBytes * 2 / size));
  }
  static constexpr std::size_t ring_cell_bytes_for(std::size_t size) {
    return std::clamp(round_up(kMostRingBytes / (size * kRingCells)), kLeastRingCellBytes, kMostRingCellBytes);
  }
  static constexpr std::size_t round_up(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
  std::size_t first_cell() const { return round_up(fields(size())); }
  std::size_t first_ring_cell() const { return first_cell() + size_ * 2 * half_bytes_; }

  std::size_t size_, cell_bytes_;
  std::size_t half_bytes_;  ///< of a rank's cells for every other step: a power of two
  std::size_t ring_cell_bytes_, board_bytes_ = 0;
};

}  // namespace runjob::runtime
