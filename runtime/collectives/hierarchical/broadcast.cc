#include "runtime/collectives/hierarchical/broadcast.hpp"

#include <optional>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/cube_exchange.hpp"
#include "runtime/collectives/hierarchical/exchanges/direct_exchange.hpp"
#include "runtime/collectives/hierarchical/exchanges/pipeline.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"

namespace runjob::runtime {
namespace {

/// One step of the small exchange on each host, in which the root or else the leader gives.
void in_short_messages(HostChannels& channels, const Call& call, std::size_t bytes) {
  const Topology& topology = channels.topology;
  SmallExchange& small = channels.local.small;
  const int root_host = topology.host_of(call.root);
  const int giver = topology.host() == root_host ? topology.local_rank_of(call.root) : 0;
  const auto exchange = [&] {
    if (channels.is_leader()) {
      cube_broadcast({*channels.transport, topology.host(), topology.hosts()}, root_host, call.output, bytes);
    }
  };
  if (topology.local_rank() == giver) {
    if (topology.host() != root_host) exchange();
    if (!channels.is_alone_on_host()) small.send(call.output, bytes);
  } else {
    small.send(nullptr, 0);
    copy_bytes(call.output, small.take(giver, bytes), bytes);
  }
  if (topology.host() == root_host) exchange();
}

/// One message from the root to the only other rank.
void between_two_ranks(HostChannels& channels, const Call& call, std::size_t bytes) {
  const int root = channels.topology.host_of(call.root);
  DirectExchange exchange(channels, call.output, bytes, call.output, bytes);
  if (channels.topology.host() != root) {
    exchange.receive(root, {0, bytes});
    return exchange.wait();
  }
  channels.transport->set_one_way(1 - root, true);
  exchange.send(1 - root, {0, bytes});
  exchange.wait();
  channels.transport->set_one_way(1 - root, false);
}

class Chain {
 public:
  Chain(HostChannels& channels, const Call& call, std::size_t bytes)
      : channels_(channels),
        ring_(channels.local.ring),
        place_((channels.topology.host() + channels.topology.hosts() - channels.topology.host_of(call.root)) %
               channels.topology.hosts()),
        root_(place_ == 0 ? channels.topology.local_rank_of(call.root) : -1),
        columns_(channels.costs.columns),
        data_(static_cast<std::byte*>(call.output)),
        pieces_(bytes, piece_bytes(bytes, kWanted, kLeast, ring_.cell_bytes())),
        tags_(channels.next_tags()) {
    if (is_column()) lanes_.emplace(*channels.transport, data_, bytes);
  }

  void run() {
    if (is_column()) {
      for (std::size_t i = 0; i < std::min(pieces_.number(), Lanes::kNumber - 1); ++i) receive(i);
    }
    run_pipeline(
        ring_, pieces_.number(), [this](std::size_t i, std::uint64_t step) { give(i, step); },
        [this](std::size_t i, std::uint64_t step) { work(i, step); },
        [this](std::size_t i, std::uint64_t step) { take(i, step); });
    if (lanes_) lanes_->wait_all_sent();
  }

 private:
  /// The last host waits for one piece from each host before it; more pieces would cost more than that.
  static constexpr std::size_t kWanted = 32, kLeast = 32u << 10;

  bool is_column() const { return ring_.rank() < columns_; }
  bool is_root() const { return ring_.rank() == root_; }
  Range part(std::size_t i, int column) const {
    Range part = part_of(pieces_[i].count, 1, column, columns_);
    part.first += pieces_[i].first;
    return part;
  }
  std::byte* in_slot(int rank, std::uint64_t step, std::size_t i, const Range& range) const {
    return ring_.cell(rank, step) + (range.first - pieces_[i].first);
  }

  void give(std::size_t i, std::uint64_t step) const {
    if (!is_root() || channels_.is_alone_on_host()) return;
    copy_bytes(ring_.cell(ring_.rank(), step), data_ + pieces_[i].first, pieces_[i].count);
  }

  void receive(std::size_t i) {
    const Range own = part(i, ring_.rank());
    if (place_ == 0 || own.count == 0) return;
    (*lanes_)[i].receive(channels_.left(), tags_ + i, own.first, own.count).throw_if_failed();
  }

  void work(std::size_t i, std::uint64_t step) {
    if (!is_column()) return;
    const std::size_t next = i + Lanes::kNumber - 1;
    if (next < pieces_.number()) receive(next);
    const Range own = part(i, ring_.rank());
    if (own.count == 0) return;
    if (place_ > 0) {
      (*lanes_)[i].wait_received().throw_if_failed();
    } else if (!is_root()) {
      ring_.wait_filled(root_, step);
      copy_bytes(data_ + own.first, in_slot(root_, step, i, own), own.count);
    }
    if (place_ + 1 < channels_.topology.hosts()) {
      (*lanes_)[i].wait_sent().throw_if_failed();
      (*lanes_)[i].send(channels_.right(), tags_ + i, own.first, own.count).throw_if_failed();
    }
    if (channels_.is_alone_on_host() || is_root()) return;
    copy_bytes(in_slot(ring_.rank(), step, i, own), data_ + own.first, own.count);
  }

  void take(std::size_t i, std::uint64_t step) const {
    for (int column = 0; column < columns_ && !is_root(); ++column) {
      const Range part = this->part(i, column);
      if (column == ring_.rank() || part.count == 0) continue;
      ring_.wait_reduced(column, step);
      copy_bytes(data_ + part.first, in_slot(column, step, i, part), part.count);
    }
  }

  HostChannels& channels_;
  Ring& ring_;
  const int place_;  ///< of this host in the chain
  const int root_;   ///< its local rank; -1 on other hosts
  const int columns_;
  std::byte* const data_;
  const Pieces pieces_;
  const std::uint64_t tags_;
  std::optional<Lanes> lanes_;
};

}  // namespace

void broadcast(HostChannels& channels, const Call& call) {
  call.tell_stage("HOSTS_BCAST", nullptr);
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (bytes <= channels.most_short()) return in_short_messages(channels, call, bytes);
  if (channels.topology.size() == 2) return between_two_ranks(channels, call, bytes);
  Chain(channels, call, bytes).run();
}

}  // namespace runjob::runtime
