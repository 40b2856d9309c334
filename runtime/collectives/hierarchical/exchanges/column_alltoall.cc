#include "runtime/collectives/hierarchical/exchanges/column_alltoall.hpp"

#include <deque>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/alltoall_counts.hpp"
#include "runtime/collectives/hierarchical/exchanges/ring_exchange.hpp"

namespace runjob::runtime {
namespace {

/// The bytes that the ranks of one host send to one rank, in the order of their ranks. The stream is cut where a rank
/// of another host has its part in between, because the receiver's output is cut there as well.
class ColumnStream {
 public:
  /// `ranks`: those of the sending host, ascending. `bytes`: the size of a rank's part, by its local rank.
  template <class Bytes>
  ColumnStream(const std::vector<int>& ranks, Bytes bytes) {
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      const Range part{parts_.empty() ? 0 : end(parts_.back()), bytes(local)};
      if (local == 0 || ranks[local] != ranks[local - 1] + 1) runs_.push_back({{part.first, 0}, ranks[local]});
      runs_.back().range.count += part.count;
      parts_.push_back(part);
    }
  }

  struct Run {
    Range range;
    int rank;  ///< the first one
  };
  const std::vector<Run>& runs() const { return runs_; }
  const Range& part(int local) const { return parts_[static_cast<std::size_t>(local)]; }

 private:
  static std::size_t end(const Range& range) { return range.first + range.count; }

  std::vector<Range> parts_;  ///< by local rank
  std::vector<Run> runs_;     ///< of consecutive ranks
};

class ColumnAlltoall {
 public:
  ColumnAlltoall(HostChannels& channels, const Call& call)
      : channels_(channels),
        topology_(channels.topology),
        ring_(channels.local.ring),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        received_(bytes_of(call.counts, size_of(call.dtype))),
        input_offsets_(offsets_of(bytes_of(call.send_counts, size_of(call.dtype)))),
        output_offsets_(offsets_of(received_)),
        output_bytes_(output_offsets_.back() + received_.back()),
        longest_(call.largest_part * size_of(call.dtype) * static_cast<std::size_t>(ring_.size())),
        segment_(segment_of(longest_, ring_.cell_bytes(), static_cast<std::size_t>(topology_.hosts()))),
        tags_(channels.next_tags()),
        counts_(ring_, call) {
    for (int distance = 0; distance < topology_.hosts(); ++distance) add_streams(distance);
    const std::size_t fit = std::max<std::size_t>(1, ring_.cell_bytes() / segment_);
    for (std::size_t first = 0; first < hosts(); first += fit) {
      for (std::size_t i = 0; i < segments(); ++i) items_.push_back({first, std::min(hosts(), first + fit), i});
    }
  }

  void run() {
    const std::uint64_t first = ring_.take_steps(items_.size(), segment_ * (items_.front().end - items_.front().begin));
    for (std::size_t i = 0; i < std::min(items_.size(), kExpected); ++i) receive(items_[i]);
    for (std::size_t i = 0; i < items_.size() + 1 + kOnTheirWay; ++i) {
      if (i < items_.size()) {
        ring_.wait_free(first + i);
        give(items_[i], first + i);
        ring_.filled(first + i);
      }
      if (i >= 1 && i - 1 < items_.size()) send_on(items_[i - 1], first + i - 1);
      if (i < 1 + kOnTheirWay) continue;
      const std::size_t last = i - 1 - kOnTheirWay;
      finish_oldest();
      ring_.done(first + last);
      if (last + kExpected < items_.size()) receive(items_[last + kExpected]);
    }
  }

 private:
  /// The segments of this number of the streams at these distances: [begin, end).
  struct Item {
    std::size_t begin, end, number;
  };
  using Messages = std::vector<std::unique_ptr<TransportBuffer>>;

  /// The items whose messages may be on their way before the oldest one is waited for. With the two that are written
  /// and sent on meanwhile, fewer than the ring has cells.
  static constexpr std::size_t kOnTheirWay = 4;
  /// The items whose messages are expected: at least as many as another host sends before it waits.
  static constexpr std::size_t kExpected = kOnTheirWay + 2;

  static std::size_t segment_of(std::size_t longest, std::size_t cell, std::size_t hosts) {
    constexpr std::size_t kLine = 64;
    const std::size_t whole = (longest + kLine - 1) / kLine * kLine;
    return whole * hosts <= cell ? whole : segment_bytes(longest, cell);
  }

  std::size_t hosts() const { return static_cast<std::size_t>(topology_.hosts()); }
  std::size_t segments() const { return Pieces(longest_, segment_).number(); }
  int right(std::size_t distance) const { return (topology_.host() + static_cast<int>(distance)) % topology_.hosts(); }
  int left(std::size_t distance) const {
    return (topology_.host() + topology_.hosts() - static_cast<int>(distance)) % topology_.hosts();
  }
  Range segment(const Item& item) const { return {item.number * segment_, segment_}; }
  std::uint64_t tag(const Item& item, std::size_t distance, std::size_t run) const {
    return tags_ + (distance * segments() + item.number) * static_cast<std::size_t>(ring_.size()) + run;
  }
  /// The offset of the segments of an item for the rank with this local rank.
  std::byte* cell(const Item& item, int local, std::uint64_t step, std::size_t distance) const {
    return ring_.cell(local, step) + (distance - item.begin) * segment_;
  }

  void add_streams(int distance) {
    const auto index = static_cast<std::size_t>(distance);
    const std::vector<int>&here = topology_.ranks(topology_.host()), &there = topology_.ranks(right(index));
    std::vector<ColumnStream>& streams = outgoing_.emplace_back();
    for (const int to : there)
      streams.emplace_back(here, [&](std::size_t local) { return counts_.sent(static_cast<int>(local), to); });
    const std::vector<int>& from = topology_.ranks(left(index));
    incoming_.emplace_back(from, [&](std::size_t local) { return received_[static_cast<std::size_t>(from[local])]; });
  }

  /// Writes this rank's bytes of an item for every rank of this host that sends them on or keeps them.
  void give(const Item& item, std::uint64_t step) const {
    for (std::size_t distance = item.begin; distance < item.end; ++distance) {
      const std::vector<int>& ranks = topology_.ranks(right(distance));
      for (int local = 0; local < ring_.size(); ++local) {
        if (distance == 0 && local == ring_.rank()) continue;
        const Range part = outgoing_[distance][static_cast<std::size_t>(local)].part(ring_.rank());
        const Range mine = overlap(part, segment(item));
        if (mine.count == 0) continue;  // an empty buffer may be null
        const std::size_t offset = input_offsets_[static_cast<std::size_t>(ranks[static_cast<std::size_t>(local)])];
        copy_bytes(cell(item, local, step, distance) + (mine.first - segment(item).first),
                   input_ + offset + (mine.first - part.first), mine.count);
      }
    }
  }

  /// Begins to receive the bytes for this rank in an item.
  void receive(const Item& item) {
    Messages& messages = arriving_.emplace_back();
    for (std::size_t distance = std::max<std::size_t>(item.begin, 1); distance < item.end; ++distance) {
      const std::vector<ColumnStream::Run>& runs = incoming_[distance].runs();
      for (std::size_t run = 0; run < runs.size(); ++run) {
        const Range range = overlap(runs[run].range, segment(item));
        if (range.count == 0) continue;
        messages.push_back(channels_.transport->buffer(output_, output_bytes_));
        const std::size_t offset = output_offsets_[static_cast<std::size_t>(runs[run].rank)];
        messages.back()
            ->receive(left(distance), tag(item, distance, run), offset + (range.first - runs[run].range.first),
                      range.count)
            .throw_if_failed();
      }
    }
  }

  /// Sends the bytes that this host's ranks have written for this rank's column, and copies out those for this rank.
  void send_on(const Item& item, std::uint64_t step) {
    for (int local = 0; local < ring_.size(); ++local) {
      if (local != ring_.rank()) ring_.wait_filled(local, step);
    }
    Messages& messages = leaving_.emplace_back();
    for (std::size_t distance = std::max<std::size_t>(item.begin, 1); distance < item.end; ++distance) {
      const std::vector<ColumnStream::Run>& runs = outgoing_[distance][static_cast<std::size_t>(ring_.rank())].runs();
      for (std::size_t run = 0; run < runs.size(); ++run) {
        const Range range = overlap(runs[run].range, segment(item));
        if (range.count == 0) continue;
        messages.push_back(channels_.transport->buffer(cell(item, ring_.rank(), step, distance), segment_));
        messages.back()
            ->send(right(distance), tag(item, distance, run), range.first - segment(item).first, range.count)
            .throw_if_failed();
      }
    }
    if (item.begin == 0) keep(item, step);
  }

  /// Copies this rank's part of the bytes that the ranks of this host send each other.
  void keep(const Item& item, std::uint64_t step) const {
    const std::vector<int>& ranks = topology_.ranks(topology_.host());
    for (int local = 0; local < ring_.size(); ++local) {
      const Range part = incoming_.front().part(local), mine = overlap(part, segment(item));
      if (mine.count == 0) continue;
      const auto rank = static_cast<std::size_t>(ranks[static_cast<std::size_t>(local)]);
      const std::size_t in_part = mine.first - part.first;
      const std::byte* from = local == ring_.rank()
                                  ? input_ + input_offsets_[rank] + in_part
                                  : cell(item, ring_.rank(), step, 0) + (mine.first - segment(item).first);
      copy_bytes(output_ + output_offsets_[rank] + in_part, from, mine.count);
    }
  }

  /// Waits for all messages of the oldest item.
  void finish_oldest() {
    for (const auto& message : leaving_.front()) message->wait_sent().throw_if_failed();
    for (const auto& message : arriving_.front()) message->wait_received().throw_if_failed();
    leaving_.pop_front();
    arriving_.pop_front();
  }

  HostChannels& channels_;
  const Topology& topology_;
  Ring& ring_;
  const std::byte* const input_;
  std::byte* const output_;
  const ByteCounts received_;                        ///< by rank
  const ByteCounts input_offsets_, output_offsets_;  ///< by rank
  const std::size_t output_bytes_;
  const std::size_t longest_, segment_;  ///< the longest that a stream may be; of a segment. The same on all ranks.
  const std::uint64_t tags_;
  const AlltoallCounts counts_;
  std::vector<std::vector<ColumnStream>> outgoing_;  ///< by distance, then by the receiver's local rank
  std::vector<ColumnStream> incoming_;               ///< by distance
  std::vector<Item> items_;
  std::deque<Messages> leaving_, arriving_;  ///< of the items that are not finished
};

}  // namespace

void column_alltoall(HostChannels& channels, const Call& call) {
  ColumnAlltoall(channels, call).run();
}

}  // namespace runjob::runtime
