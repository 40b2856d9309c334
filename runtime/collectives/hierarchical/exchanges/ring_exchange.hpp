#pragma once

#include <vector>

#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"

namespace runjob::runtime {

/// The data that goes round a ring of hosts: a chunk for each host, cut into segments. Units  bytes. Pure.
struct RingPlan {
  std::vector<std::vector<Range>> segments;  ///< by chunk
  std::size_t width = 0;                     ///< the most segments that a chunk has

  /// `chunks`: ranges of a buffer, those of one chunk in ascending order and not adjacent. A segment lies in one range.
  static RingPlan cut(const std::vector<std::vector<Range>>& chunks, std::size_t most_bytes);

  /// An empty range when the chunk has fewer segments.
  Range segment(std::size_t chunk, std::size_t index) const {
    return index < segments[chunk].size() ? segments[chunk][index] : Range{};
  }
};

/// The size of segments for chunks of `chunk_bytes`: several to a chunk, so that the next one is on its way while one
/// is worked on, but long enough to be worth a message; at most `most`.
std::size_t segment_bytes(std::size_t chunk_bytes, std::size_t most);

/// Ranges one after the other, without empty ones, and adjacent ones joined.
std::vector<Range> joined(const std::vector<Range>& ranges);

/// The bytes that two ranges have in common.
Range overlap(const Range& a, const Range& b);

/// The order of messages in all collectives that go round the ring of hosts, on each of `columns` local ranks with its
/// own part of each segment. A host sends each chunk to its right neighbour one round after it came from the left one:
///   rounds 0 to h-1    chunk (host - 1 - round): its sums, if the collective reduces; the last ones are complete;
///   rounds h to 2h-2   chunk (host - 1 - round): the complete chunks go round once more.
/// An item is a segment in a round. Segments follow each other through the host and over the wire without a barrier.
///
/// Items come in blocks of `kBlock` segments of each chunk. A block goes all its rounds before the next one begins, so
/// that little memory holds data that has come and was not worked on. In its last round a block sends nothing, so the
/// first round of the next block, which receives nothing, is mixed with it. A message is worked on at most 2 kBlock
/// items after it was sent. Lanes has as many; with fewer, all hosts could wait for each other's memory.
/// Source   Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009).
/// Threads  one.
class RingWalk {
 public:
  RingWalk(HostChannels& channels, const RingPlan& plan, int columns, std::size_t first_round, std::size_t last_round);

  static constexpr std::size_t kBlock = Lanes::kNumber / 2;

  std::size_t items() const { return items_.size(); }
  std::size_t round(std::size_t item) const { return items_[item].round; }
  bool is_first(std::size_t item) const { return round(item) == first_round_; }
  bool is_last(std::size_t item) const { return round(item) == last_round_; }

  Range segment(std::size_t item) const;
  /// The part of the item's segment that belongs to `column`.
  Range part(std::size_t item, int column) const;
  /// This rank's part of the item's segment; empty for a rank of no column.
  Range own_part(std::size_t item) const;

  int columns() const { return columns_; }
  bool is_column() const { return local_rank_ < columns_; }

  /// The place of a range in `slot`, which holds the item's segment.
  std::byte* in_slot(std::byte* slot, std::size_t item, const Range& range) const {
    return slot + (range.first - segment(item).first);
  }

  /// Begins to receive this rank's part of the item from the left neighbour, to `offset` of the lane.
  void receive(std::size_t item, Lanes& lanes, std::size_t offset);
  void wait_received(std::size_t item, Lanes& lanes) { lanes[item].wait_received().throw_if_failed(); }
  /// Sends this rank's part to the right neighbour, for which it belongs to the next round.
  void send(std::size_t item, Lanes& lanes, std::size_t offset);

 private:
  struct Item {
    std::size_t round, segment;
  };

  void add_block(std::size_t begin);
  std::uint64_t tag(std::size_t round, std::size_t item) const {
    return tags_ + round * plan_.width + items_[item].segment;
  }

  HostChannels& channels_;
  const RingPlan& plan_;
  const int columns_, local_rank_;
  const std::size_t host_, hosts_, first_round_, last_round_;
  const std::uint64_t tags_;
  std::vector<Item> items_;
};

}  // namespace runjob::runtime
