#include "runtime/collectives/hierarchical/alltoall.hpp"

#include <optional>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/alltoall_counts.hpp"
#include "runtime/collectives/hierarchical/exchanges/column_alltoall.hpp"
#include "runtime/collectives/hierarchical/exchanges/direct_exchange.hpp"
#include "runtime/collectives/hierarchical/exchanges/pipeline.hpp"
#include "runtime/collectives/hierarchical/exchanges/ring_exchange.hpp"

namespace runjob::runtime {
namespace {

/// A part of a stream that belongs to one rank of this host.
struct Block {
  Range range;         ///< in the stream, bytes
  int local;           ///< the rank to which it belongs
  std::size_t offset;  ///< in that rank's buffer; known to itself only
};

struct Stream {
  std::vector<Block> blocks;
  std::size_t bytes = 0;

  void add(std::size_t count, int local, std::size_t offset) {
    blocks.push_back({{bytes, count}, local, offset});
    bytes += count;
  }
};

class Alltoall {
 public:
  Alltoall(HostChannels& channels, const Call& call)
      : channels_(channels),
        topology_(channels.topology),
        ring_(channels.local.ring),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        input_offsets_(offsets_of(bytes_of(call.send_counts, size_of(call.dtype)))),
        output_offsets_(offsets_of(bytes_of(call.counts, size_of(call.dtype)))),
        segment_(segment_bytes(call.largest_part * size_of(call.dtype), ring_.cell_bytes())),
        tags_(channels.next_tags()) {
    const AlltoallCounts counts(ring_, call);
    for (int distance = 0; distance < topology_.hosts(); ++distance) add_streams(counts, distance);
    if (!channels.is_leader()) return;
    arrivals_ = channels.messages.reserve(Lanes::kNumber * segment_);
    departures_ = channels.sums.reserve(Lanes::kNumber * segment_);
    arriving_.emplace(*channels.transport, arrivals_, Lanes::kNumber * segment_);
    leaving_.emplace(*channels.transport, departures_, Lanes::kNumber * segment_);
  }

  void run() {
    if (channels_.is_leader()) {
      for (std::size_t i = 0; i < std::min(items_.size(), Lanes::kNumber - 1); ++i) receive(i);
    }
    run_pipeline(
        ring_, items_.size(), [this](std::size_t i, std::uint64_t step) { give(i, step); },
        [this](std::size_t i, std::uint64_t step) { work(i, step); },
        [this](std::size_t i, std::uint64_t step) { take(i, step); });
    if (leaving_) leaving_->wait_all_sent();
  }

 private:
  struct Item {
    int distance;
    std::size_t number;  ///< of the segment in both streams of the distance
  };

  /// The host so far to the right, and to the left.
  int right(int distance) const { return (topology_.host() + distance) % topology_.hosts(); }
  int left(int distance) const { return (topology_.host() + topology_.hosts() - distance) % topology_.hosts(); }
  const Stream& outgoing(const Item& item) const { return outgoing_[static_cast<std::size_t>(item.distance)]; }
  const Stream& incoming(const Item& item) const { return incoming_[static_cast<std::size_t>(item.distance)]; }
  Range segment(const Stream& stream, const Item& item) const { return Pieces(stream.bytes, segment_)[item.number]; }
  std::uint64_t tag(const Item& item) const {
    return tags_ + (static_cast<std::uint64_t>(item.distance) << 20) + item.number;
  }
  std::size_t lane(std::size_t i) const { return i % Lanes::kNumber * segment_; }

  void add_streams(const AlltoallCounts& counts, int distance) {
    Stream& outgoing = outgoing_.emplace_back();
    Stream& incoming = incoming_.emplace_back();
    for (int local = 0; local < topology_.local_size(); ++local) {
      for (const int to : topology_.ranks(right(distance)))
        outgoing.add(counts.sent(local, to), local, input_offsets_[static_cast<std::size_t>(to)]);
    }
    for (const int from : topology_.ranks(left(distance))) {
      for (int local = 0; local < topology_.local_size(); ++local)
        incoming.add(counts.received(local, from), local, output_offsets_[static_cast<std::size_t>(from)]);
    }
    const std::size_t bytes = std::max(outgoing.bytes, incoming.bytes);
    for (std::size_t number = 0; number < Pieces(bytes, segment_).number(); ++number)
      items_.push_back({distance, number});
  }

  /// Copies this rank's bytes of a segment to the segment's place `to`.
  void put(const Item& item, std::byte* to) const {
    const Range range = segment(outgoing(item), item);
    for (const Block& block : outgoing(item).blocks) {
      const Range mine = block.local == ring_.rank() ? overlap(block.range, range) : Range{};
      if (mine.count == 0) continue;
      copy_bytes(to + (mine.first - range.first), input_ + block.offset + (mine.first - block.range.first), mine.count);
    }
  }

  void give(std::size_t i, std::uint64_t step) const {
    if (!channels_.is_leader()) put(items_[i], ring_.cell(ring_.rank(), step));
  }

  void receive(std::size_t i) {
    const Item& item = items_[i];
    const Range range = segment(incoming(item), item);
    if (item.distance == 0 || range.count == 0) return;
    (*arriving_)[i].receive(left(item.distance), tag(item), lane(i), range.count).throw_if_failed();
  }

  void work(std::size_t i, std::uint64_t step) {
    if (!channels_.is_leader()) return;
    const std::size_t next = i + Lanes::kNumber - 1;
    if (next < items_.size()) receive(next);
    const Item& item = items_[i];
    std::byte* own_slot = ring_.cell(0, step);
    if (item.distance == 0) return gather(item, step, own_slot);
    send(i, step);
    const Range range = segment(incoming(item), item);
    if (range.count == 0) return;
    (*arriving_)[i].wait_received().throw_if_failed();
    copy_bytes(own_slot, arrivals_ + lane(i), range.count);
  }

  void send(std::size_t i, std::uint64_t step) {
    const Item& item = items_[i];
    const Range range = segment(outgoing(item), item);
    if (range.count == 0) return;
    (*leaving_)[i].wait_sent().throw_if_failed();
    gather(item, step, departures_ + lane(i));
    (*leaving_)[i].send(right(item.distance), tag(item), lane(i), range.count).throw_if_failed();
  }

  /// Copies the bytes of a segment of all ranks of this host to `to`.
  void gather(const Item& item, std::uint64_t step, std::byte* to) const {
    const Range range = segment(outgoing(item), item);
    put(item, to);
    for (const Block& block : outgoing(item).blocks) {
      const Range theirs = block.local == ring_.rank() ? Range{} : overlap(block.range, range);
      if (theirs.count == 0) continue;
      ring_.wait_filled(block.local, step);
      const std::size_t at = theirs.first - range.first;
      copy_bytes(to + at, ring_.cell(block.local, step) + at, theirs.count);
    }
  }

  void take(std::size_t i, std::uint64_t step) const {
    const Item& item = items_[i];
    const Range range = segment(incoming(item), item);
    for (const Block& block : incoming(item).blocks) {
      const Range mine = block.local == ring_.rank() ? overlap(block.range, range) : Range{};
      if (mine.count == 0) continue;
      ring_.wait_reduced(0, step);
      copy_bytes(output_ + block.offset + (mine.first - block.range.first),
                 ring_.cell(0, step) + (mine.first - range.first), mine.count);
    }
  }

  HostChannels& channels_;
  const Topology& topology_;
  Ring& ring_;
  const std::byte* const input_;
  std::byte* const output_;
  const ByteCounts input_offsets_, output_offsets_;  ///< by rank, bytes
  const std::size_t segment_;
  const std::uint64_t tags_;
  std::vector<Stream> outgoing_, incoming_;  ///< by distance
  std::vector<Item> items_;
  std::byte* arrivals_ = nullptr;
  std::byte* departures_ = nullptr;
  std::optional<Lanes> arriving_, leaving_;
};

/// The parts of a buffer, by rank, in bytes.
std::vector<Range> parts_of(const std::vector<std::size_t>& counts, std::size_t element) {
  const ByteCounts bytes = bytes_of(counts, element), offsets = offsets_of(bytes);
  std::vector<Range> parts;
  for (std::size_t rank = 0; rank < bytes.size(); ++rank) parts.push_back({offsets[rank], bytes[rank]});
  return parts;
}

/// Every rank sends each other rank its part, from the input into the output.
void among_lone_ranks(HostChannels& channels, const Call& call) {
  const Topology& topology = channels.topology;
  const std::vector<Range> sent = parts_of(call.send_counts, size_of(call.dtype)),
                           received = parts_of(call.counts, size_of(call.dtype));
  const auto rank = static_cast<std::size_t>(topology.rank());
  const Range own = sent[rank], place = received[rank];
  call.tell_stage("HOSTS_ALLTOALL", nullptr);
  DirectExchange exchange(channels, call.input, sent.back().first + sent.back().count, call.output,
                          received.back().first + received.back().count);
  for (int distance = 1; distance < topology.hosts(); ++distance) {
    const int from = (topology.host() + topology.hosts() - distance) % topology.hosts();
    const int to = (topology.host() + distance) % topology.hosts();
    exchange.receive(from, received[static_cast<std::size_t>(topology.ranks(from).front())]);
    exchange.send(to, sent[static_cast<std::size_t>(topology.ranks(to).front())]);
  }
  exchange.copy(static_cast<std::byte*>(call.output) + place.first,
                static_cast<const std::byte*>(call.input) + own.first, own.count);
  exchange.wait();
}

}  // namespace

void alltoall(HostChannels& channels, const Call& call) {
  if (channels.are_all_alone()) return among_lone_ranks(channels, call);
  call.tell_stage("HOSTS_ALLTOALL", nullptr);
  if (channels.topology.columns_reach_all()) return column_alltoall(channels, call);
  Alltoall(channels, call).run();
}

}  // namespace runjob::runtime
