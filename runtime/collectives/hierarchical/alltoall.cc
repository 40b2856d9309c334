#include "runtime/collectives/hierarchical/alltoall.hpp"

#include <cstring>
#include <numeric>
#include <optional>

#include "runtime/collectives/hierarchical/exchanges/direct_exchange.hpp"
#include "runtime/collectives/hierarchical/exchanges/pipeline.hpp"
#include "runtime/collectives/hierarchical/exchanges/ring_exchange.hpp"

namespace runjob::runtime {
namespace {

using Counts = std::vector<std::size_t>;

/// What every rank of this host sends and receives: its bytes for each rank, then from each rank.
class Tables {
 public:
  Tables(Ring& ring, Counts own, int size) : size_(static_cast<std::size_t>(size)) {
    const std::size_t bytes = own.size() * sizeof(std::size_t);
    const Pieces pieces(bytes, ring.cell_bytes());
    tables_.assign(static_cast<std::size_t>(ring.size()), Counts(own.size()));
    tables_[static_cast<std::size_t>(ring.rank())] = std::move(own);
    run_pipeline(
        ring, pieces.number(),
        [&](std::size_t i, std::uint64_t step) {
          std::memcpy(ring.cell(ring.rank(), step), piece(ring.rank(), pieces[i]), pieces[i].count);
        },
        [](std::size_t, std::uint64_t) {},
        [&](std::size_t i, std::uint64_t step) {
          for (int rank = 0; rank < ring.size(); ++rank) {
            if (rank == ring.rank()) continue;
            ring.wait_filled(rank, step);
            std::memcpy(piece(rank, pieces[i]), ring.cell(rank, step), pieces[i].count);
          }
        });
  }

  std::size_t sent(int local, int to) const { return tables_[index(local)][index(to)]; }
  std::size_t received(int local, int from) const { return tables_[index(local)][size_ + index(from)]; }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  std::byte* piece(int local, const Range& range) {
    return reinterpret_cast<std::byte*>(tables_[index(local)].data()) + range.first;
  }

  std::size_t size_;
  std::vector<Counts> tables_;  ///< by local rank
};

/// A part of a stream that belongs to one rank of this host.
struct Block {
  Range range;         ///< in the stream, bytes
  int local;           ///< whose
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

/// Where each rank's part begins.
Counts offsets_of(const Counts& counts, std::size_t element) {
  Counts offsets;
  std::size_t before = 0;
  for (const std::size_t count : counts) {
    offsets.push_back(before);
    before += count * element;
  }
  return offsets;
}

Counts table_of(const Call& call) {
  Counts table = call.send_counts;
  table.insert(table.end(), call.counts.begin(), call.counts.end());
  for (std::size_t& count : table) count *= size_of(call.dtype);
  return table;
}

class Alltoall {
 public:
  Alltoall(HostChannels& channels, const Call& call)
      : channels_(channels),
        topology_(channels.topology),
        ring_(channels.local.ring),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        input_offsets_(offsets_of(call.send_counts, size_of(call.dtype))),
        output_offsets_(offsets_of(call.counts, size_of(call.dtype))),
        segment_(segment_bytes(call.largest_part * size_of(call.dtype), ring_.cell_bytes())),
        tags_(channels.next_tags()) {
    const Tables tables(ring_, table_of(call), topology_.size());
    for (int distance = 0; distance < topology_.hosts(); ++distance) add_streams(tables, distance);
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

  void add_streams(const Tables& tables, int distance) {
    Stream& outgoing = outgoing_.emplace_back();
    Stream& incoming = incoming_.emplace_back();
    for (int local = 0; local < topology_.local_size(); ++local) {
      for (const int to : topology_.ranks(right(distance)))
        outgoing.add(tables.sent(local, to), local, input_offsets_[static_cast<std::size_t>(to)]);
    }
    for (const int from : topology_.ranks(left(distance))) {
      for (int local = 0; local < topology_.local_size(); ++local)
        incoming.add(tables.received(local, from), local, output_offsets_[static_cast<std::size_t>(from)]);
    }
    const std::size_t bytes = std::max(outgoing.bytes, incoming.bytes);
    for (std::size_t number = 0; number < Pieces(bytes, segment_).number(); ++number)
      items_.push_back({distance, number});
  }

  /// Copies what this rank has for a segment to the segment's place `to`.
  void put(const Item& item, std::byte* to) const {
    const Range range = segment(outgoing(item), item);
    for (const Block& block : outgoing(item).blocks) {
      const Range mine = block.local == ring_.rank() ? overlap(block.range, range) : Range{};
      if (mine.count == 0) continue;
      std::memcpy(to + (mine.first - range.first), input_ + block.offset + (mine.first - block.range.first),
                  mine.count);
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
    std::memcpy(own_slot, arrivals_ + lane(i), range.count);
  }

  void send(std::size_t i, std::uint64_t step) {
    const Item& item = items_[i];
    const Range range = segment(outgoing(item), item);
    if (range.count == 0) return;
    (*leaving_)[i].wait_sent().throw_if_failed();
    gather(item, step, departures_ + lane(i));
    (*leaving_)[i].send(right(item.distance), tag(item), lane(i), range.count).throw_if_failed();
  }

  /// All that the ranks of this host have for a segment, to `to`.
  void gather(const Item& item, std::uint64_t step, std::byte* to) const {
    const Range range = segment(outgoing(item), item);
    put(item, to);
    for (const Block& block : outgoing(item).blocks) {
      const Range theirs = block.local == ring_.rank() ? Range{} : overlap(block.range, range);
      if (theirs.count == 0) continue;
      ring_.wait_filled(block.local, step);
      const std::size_t at = theirs.first - range.first;
      std::memcpy(to + at, ring_.cell(block.local, step) + at, theirs.count);
    }
  }

  void take(std::size_t i, std::uint64_t step) const {
    const Item& item = items_[i];
    const Range range = segment(incoming(item), item);
    for (const Block& block : incoming(item).blocks) {
      const Range mine = block.local == ring_.rank() ? overlap(block.range, range) : Range{};
      if (mine.count == 0) continue;
      ring_.wait_reduced(0, step);
      std::memcpy(output_ + block.offset + (mine.first - block.range.first),
                  ring_.cell(0, step) + (mine.first - range.first), mine.count);
    }
  }

  HostChannels& channels_;
  const Topology& topology_;
  Ring& ring_;
  const std::byte* const input_;
  std::byte* const output_;
  const Counts input_offsets_, output_offsets_;  ///< by rank, bytes
  const std::size_t segment_;
  const std::uint64_t tags_;
  std::vector<Stream> outgoing_, incoming_;  ///< by distance
  std::vector<Item> items_;
  std::byte* arrivals_ = nullptr;
  std::byte* departures_ = nullptr;
  std::optional<Lanes> arriving_, leaving_;
};

/// Every rank sends each other rank its part, from the input into the output.
void among_lone_ranks(HostChannels& channels, const Call& call) {
  const Topology& topology = channels.topology;
  const std::size_t element = size_of(call.dtype);
  const Counts starts = offsets_of(call.send_counts, element), places = offsets_of(call.counts, element);
  const auto range = [element](const Counts& offsets, const Counts& counts, int rank) {
    const auto i = static_cast<std::size_t>(rank);
    return Range{offsets[i], counts[i] * element};
  };
  const auto bytes = [element](const Counts& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0}) * element;
  };
  DirectExchange exchange(channels, call.input, bytes(call.send_counts), call.output, bytes(call.counts));
  for (int distance = 1; distance < topology.hosts(); ++distance) {
    const int from = (topology.host() + topology.hosts() - distance) % topology.hosts();
    const int to = (topology.host() + distance) % topology.hosts();
    exchange.receive(from, range(places, call.counts, topology.ranks(from).front()));
    exchange.send(to, range(starts, call.send_counts, topology.ranks(to).front()));
  }
  const Range own = range(starts, call.send_counts, topology.rank());
  const Range place = range(places, call.counts, topology.rank());
  if (own.count > 0)
    std::memcpy(static_cast<std::byte*>(call.output) + place.first,
                static_cast<const std::byte*>(call.input) + own.first, own.count);
  exchange.wait();
}

}  // namespace

void alltoall(HostChannels& channels, const Call& call) {
  call.tell_stage("HOSTS_ALLTOALL", nullptr);
  if (channels.are_all_alone()) return among_lone_ranks(channels, call);
  Alltoall(channels, call).run();
}

}  // namespace runjob::runtime
