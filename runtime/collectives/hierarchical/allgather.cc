#include "runtime/collectives/hierarchical/allgather.hpp"

#include <optional>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/column_allgather.hpp"
#include "runtime/collectives/hierarchical/exchanges/cube_exchange.hpp"
#include "runtime/collectives/hierarchical/exchanges/direct_exchange.hpp"
#include "runtime/collectives/hierarchical/exchanges/pipeline.hpp"
#include "runtime/collectives/hierarchical/exchanges/ring_exchange.hpp"

namespace runjob::runtime {
namespace {

/// Where every rank's and every host's bytes are in the output.
struct Parts {
  std::vector<Range> of_ranks;
  std::vector<std::vector<Range>> of_hosts;
  std::size_t bytes = 0, largest = 0;  ///< of all together; of the longest range of a host

  Parts(const Topology& topology, const Call& call) {
    for (const std::size_t count : call.counts) {
      of_ranks.push_back({bytes, count * size_of(call.dtype)});
      bytes += of_ranks.back().count;
    }
    for (int host = 0; host < topology.hosts(); ++host) {
      std::vector<Range> ranges;
      for (const int rank : topology.ranks(host)) ranges.push_back((*this)[rank]);
      of_hosts.push_back(joined(ranges));
      for (const Range& range : of_hosts.back()) largest = std::max(largest, range.count);
    }
  }
  const Range& operator[](int rank) const { return of_ranks[static_cast<std::size_t>(rank)]; }
};

void in_short_messages(HostChannels& channels, const Call& call, const Parts& parts) {
  const Topology& topology = channels.topology;
  SmallExchange& small = channels.local.small;
  auto* output = static_cast<std::byte*>(call.output);
  const Range own = parts[topology.rank()];
  if (!channels.is_alone_on_host()) small.send(call.input, own.count);
  if (channels.is_leader()) {
    copy_bytes(output + own.first, call.input, own.count);
    for (int local = 1; local < topology.local_size(); ++local) {
      const Range part = parts[topology.ranks(topology.host())[static_cast<std::size_t>(local)]];
      copy_bytes(output + part.first, small.take(local, part.count), part.count);
    }
    cube_allgather({*channels.transport, topology.host(), topology.hosts()}, parts.of_hosts, output,
                   channels.messages.reserve(Transport::kMostShortBytes));
    if (channels.is_alone_on_host()) return;
    return small.send(output, parts.bytes);
  }
  small.send(nullptr, 0);
  copy_bytes(output, small.take(0, parts.bytes), parts.bytes);
}

/// Every rank sends its bytes to every other rank.
void among_lone_ranks(HostChannels& channels, const Call& call, const Parts& parts) {
  const Topology& topology = channels.topology;
  const Range own = parts[topology.rank()];
  DirectExchange exchange(channels, call.input, own.count, call.output, parts.bytes);
  for (int distance = 1; distance < topology.hosts(); ++distance) {
    const int from = (topology.host() + topology.hosts() - distance) % topology.hosts();
    exchange.receive(from, parts[topology.ranks(from).front()]);
    exchange.send((topology.host() + distance) % topology.hosts(), {0, own.count});
  }
  exchange.copy(static_cast<std::byte*>(call.output) + own.first, call.input, own.count);
  exchange.wait();
}

/// The second half of an allreduce's ring. In its first round a host collects the parts of its own ranks.
class Walk {
 public:
  Walk(HostChannels& channels, const Call& call, const Parts& parts)
      : channels_(channels),
        ring_(channels.local.ring),
        parts_(parts),
        own_(parts[channels.topology.rank()]),
        input_(static_cast<const std::byte*>(call.input)),
        output_(static_cast<std::byte*>(call.output)),
        plan_(RingPlan::cut(parts.of_hosts, segment_bytes(parts.largest, ring_.cell_bytes()))),
        walk_(channels, plan_, channels.costs.columns, static_cast<std::size_t>(channels.topology.hosts()) - 1,
              2 * static_cast<std::size_t>(channels.topology.hosts()) - 2) {
    if (walk_.is_column()) lanes_.emplace(*channels.transport, output_, parts.bytes);
  }

  void run() {
    if (walk_.is_column()) {
      for (std::size_t i = 0; i < std::min(walk_.items(), Lanes::kNumber - 1); ++i) receive(i);
    }
    run_pipeline(
        ring_, walk_.items(), [this](std::size_t i, std::uint64_t step) { give(i, step); },
        [this](std::size_t i, std::uint64_t step) { work(i, step); },
        [this](std::size_t i, std::uint64_t step) { take(i, step); });
    if (lanes_) lanes_->wait_all_sent();
  }

 private:
  /// This rank's bytes of an item of its host.
  void give(std::size_t i, std::uint64_t step) const {
    if (!walk_.is_first(i) || channels_.is_alone_on_host()) return;
    const Range mine = overlap(walk_.segment(i), own_);
    if (mine.count == 0) return;
    copy_bytes(walk_.in_slot(ring_.cell(ring_.rank(), step), i, mine), input_ + (mine.first - own_.first), mine.count);
  }

  void receive(std::size_t i) {
    const Range part = walk_.own_part(i);
    if (!walk_.is_first(i) && part.count > 0) walk_.receive(i, *lanes_, part.first);
  }

  void work(std::size_t i, std::uint64_t step) {
    if (!walk_.is_column()) return;
    const std::size_t next = i + Lanes::kNumber - 1;
    if (next < walk_.items()) receive(next);
    const Range part = walk_.own_part(i);
    if (part.count == 0) return;
    if (walk_.is_first(i)) {
      collect(i, step, part);
    } else {
      walk_.wait_received(i, *lanes_);
    }
    if (!walk_.is_last(i)) {
      (*lanes_)[i].wait_sent().throw_if_failed();
      walk_.send(i, *lanes_, part.first);
    }
    if (channels_.is_alone_on_host()) return;
    copy_bytes(walk_.in_slot(ring_.cell(ring_.rank(), step), i, part), output_ + part.first, part.count);
  }

  void collect(std::size_t i, std::uint64_t step, const Range& part) {
    const std::vector<int>& ranks = channels_.topology.ranks(channels_.topology.host());
    for (int local = 0; local < ring_.size(); ++local) {
      const Range theirs = overlap(part, parts_[ranks[static_cast<std::size_t>(local)]]);
      if (theirs.count == 0) continue;
      if (local == ring_.rank()) {
        copy_bytes(output_ + theirs.first, input_ + (theirs.first - own_.first), theirs.count);
        continue;
      }
      ring_.wait_filled(local, step);
      copy_bytes(output_ + theirs.first, walk_.in_slot(ring_.cell(local, step), i, theirs), theirs.count);
    }
  }

  void take(std::size_t i, std::uint64_t step) const {
    for (int column = 0; column < walk_.columns(); ++column) {
      const Range part = walk_.part(i, column);
      if (column == ring_.rank() || part.count == 0) continue;
      ring_.wait_reduced(column, step);
      copy_bytes(output_ + part.first, walk_.in_slot(ring_.cell(column, step), i, part), part.count);
    }
  }

  HostChannels& channels_;
  Ring& ring_;
  const Parts& parts_;
  const Range own_;
  const std::byte* const input_;
  std::byte* const output_;
  const RingPlan plan_;
  RingWalk walk_;
  std::optional<Lanes> lanes_;
};

}  // namespace

void allgather(HostChannels& channels, const Call& call) {
  const Parts parts(channels.topology, call);
  call.tell_stage("HOSTS_ALLGATHER", nullptr);
  if (parts.bytes <= channels.most_short()) return in_short_messages(channels, call, parts);
  if (channels.are_all_alone()) return among_lone_ranks(channels, call, parts);
  if (channels.topology.columns_reach_all()) return column_allgather(channels, call);
  Walk(channels, call, parts).run();
}

}  // namespace runjob::runtime
