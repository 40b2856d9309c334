#include "runtime/collectives/hierarchical/allreduce.hpp"

#include <algorithm>
#include <numeric>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/cube_exchange.hpp"
#include "runtime/collectives/hierarchical/exchanges/direct_exchange.hpp"
#include "runtime/collectives/hierarchical/exchanges/halving_doubling.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_reduction.hpp"
#include "runtime/collectives/hierarchical/exchanges/pipeline.hpp"
#include "runtime/collectives/hierarchical/exchanges/ring_reduction.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kMostShortOfTwo = 8u << 10;  ///< measured, with two ranks on each of two hosts

Range all_of(const Call& call) {
  return {0, call.count * size_of(call.dtype)};
}

/// The part of the input whose result `rank` gets, in bytes.
Range part_of_rank(const Call& call, int rank) {
  const auto own = call.counts.begin() + rank;
  const std::size_t element = size_of(call.dtype);
  return {std::accumulate(call.counts.begin(), own, std::size_t{0}) * element, *own * element};
}

/// Leaves this rank's part of the result of a short tensor in `output`.
void allreduce_short(HostChannels& channels, const Call& call, void* output) {
  const Topology& topology = channels.topology;
  SmallExchange& small = channels.local.small;
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (!channels.is_alone_on_host()) small.send(call.input, bytes);
  if (channels.is_leader()) {
    const HostReduction reduction(call, topology.size());
    std::vector<const void*> inputs{call.input};
    for (int rank = 1; rank < topology.local_size(); ++rank) inputs.push_back(small.take(rank, bytes));
    const std::size_t wide_bytes = call.count * size_of(reduction.wide());
    std::byte* sum = channels.sums.reserve(wide_bytes);
    reduction.begin(sum, inputs, call.count);
    cube_allreduce({*channels.transport, topology.host(), topology.hosts()}, sum, channels.messages.reserve(wide_bytes),
                   call.count, reduction);
    reduction.finish(output, sum, call.count);
    if (channels.is_alone_on_host()) return;
    return small.send(output, bytes);
  }
  small.send(nullptr, 0);
  copy_bytes(output, small.take(0, bytes), bytes);
}

/// The three stages one after the other: a host's inputs to its leader, the leaders' sums among the hosts, the result
/// back.
class ThroughLeader {
 public:
  ThroughLeader(HostChannels& channels, const Call& call)
      : channels_(channels),
        ring_(channels.local.ring),
        call_(call),
        element_(size_of(call.dtype)),
        pieces_(call.count,
                piece_bytes(call.count * element_, kWantedPieces, kLeastBytes, ring_.cell_bytes()) / element_),
        reduction_(call, channels.topology.size()),
        inputs_(static_cast<std::size_t>(ring_.size())) {}

  void run() {
    const std::size_t wide = size_of(reduction_.wide());
    if (channels_.is_leader()) sums_ = channels_.sums.reserve(call_.count * wide);
    run_pipeline(
        ring_, pieces_.number(), [this](std::size_t i, std::uint64_t step) { give(i, step); },
        [this](std::size_t i, std::uint64_t step) { add(i, step); }, [](std::size_t, std::uint64_t) {});
    if (channels_.is_leader()) {
      halve_and_double(channels_, sums_, channels_.messages.reserve(call_.count * wide), call_.count, reduction_);
    }
    run_pipeline(
        ring_, pieces_.number(), [this](std::size_t i, std::uint64_t step) { finish(i, step); },
        [](std::size_t, std::uint64_t) {}, [this](std::size_t i, std::uint64_t step) { take(i, step); });
  }

 private:
  static constexpr std::size_t kWantedPieces = 4, kLeastBytes = 32u << 10;

  std::byte* output(std::size_t i) const { return static_cast<std::byte*>(call_.output) + pieces_[i].first * element_; }
  const std::byte* input(std::size_t i) const {
    return static_cast<const std::byte*>(call_.input) + pieces_[i].first * element_;
  }

  void give(std::size_t i, std::uint64_t step) const {
    if (!channels_.is_leader()) copy_bytes(ring_.cell(ring_.rank(), step), input(i), pieces_[i].count * element_);
  }

  void add(std::size_t i, std::uint64_t step) {
    if (!channels_.is_leader()) return;
    for (int rank = 0; rank < ring_.size(); ++rank) {
      if (rank != 0) ring_.wait_filled(rank, step);
      inputs_[static_cast<std::size_t>(rank)] = rank == 0 ? input(i) : ring_.cell(rank, step);
    }
    reduction_.begin(sums_ + pieces_[i].first * size_of(reduction_.wide()), inputs_, pieces_[i].count);
  }

  void finish(std::size_t i, std::uint64_t step) const {
    if (!channels_.is_leader()) return;
    reduction_.finish(output(i), sums_ + pieces_[i].first * size_of(reduction_.wide()), pieces_[i].count);
    if (!channels_.is_alone_on_host()) copy_bytes(ring_.cell(0, step), output(i), pieces_[i].count * element_);
  }

  void take(std::size_t i, std::uint64_t step) const {
    if (channels_.is_leader()) return;
    ring_.wait_filled(0, step);
    copy_bytes(output(i), ring_.cell(0, step), pieces_[i].count * element_);
  }

  HostChannels& channels_;
  Ring& ring_;
  const Call& call_;
  const std::size_t element_;
  const Pieces pieces_;
  const HostReduction reduction_;
  std::vector<const void*> inputs_;  ///< by local rank
  std::byte* sums_ = nullptr;        ///< the leader's
};

/// The elements from `first` on.
Call elements_of(const Call& call, std::size_t first, std::size_t count) {
  Call part = call;
  const std::size_t offset = first * size_of(call.dtype);
  part.input = static_cast<const std::byte*>(call.input) + offset;
  part.output = static_cast<std::byte*>(call.output) + offset;
  part.count = count;
  return part;
}

/// Takes the place of a ring, which rounds on each host. The leaders' memory for sums has a limit.
void allreduce_without_rounding(HostChannels& channels, const Call& call) {
  constexpr std::size_t kMostElements = 4u << 20;
  for (std::size_t first = 0; first < call.count; first += kMostElements) {
    const Call part = elements_of(call, first, std::min(kMostElements, call.count - first));
    ThroughLeader(channels, part).run();
  }
}

}  // namespace

void allreduce(HostChannels& channels, const Call& call) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (exchanges_directly(channels.are_all_alone(), channels.topology.hosts(), bytes, channels.most_short()))
    return allreduce(channels, call, AllreduceWay::kExchange);
  const std::size_t wide_bytes = call.count * size_of(HostReduction(call, 1).wide());
  allreduce(channels, call,
            choose_allreduce(channels.costs, channels.topology.hosts(), bytes, wide_bytes, channels.most_short()));
}

void allreduce(HostChannels& channels, const Call& call, AllreduceWay way) {
  switch (way) {
    case AllreduceWay::kExchange:
      call.tell_stage("HOSTS_ALLREDUCE_EXCHANGE", "direct exchange");
      return exchange_reduce(channels, call, all_of(call), all_of(call));
    case AllreduceWay::kDoubling:
      call.tell_stage("HOSTS_ALLREDUCE_DOUBLING", "recursive doubling");
      return allreduce_short(channels, call, call.output);
    case AllreduceWay::kHalving:
      call.tell_stage("HOSTS_ALLREDUCE_HALVING", "recursive halving and doubling");
      return ThroughLeader(channels, call).run();
    case AllreduceWay::kRing:
      if (!HostReduction(call, 1).may_round()) {
        call.tell_stage("HOSTS_ALLREDUCE_HALVING", "recursive halving and doubling");
        return allreduce_without_rounding(channels, call);
      }
      call.tell_stage("HOSTS_ALLREDUCE_RING", "ring");
      return ring_allreduce(channels, call);
  }
}

void reducescatter(HostChannels& channels, const Call& call) {
  const int rank = channels.topology.rank();
  const Range own = part_of_rank(call, rank);
  const std::size_t bytes = all_of(call).count;
  if (exchanges_directly(channels.are_all_alone(), channels.topology.hosts(), bytes, channels.most_short())) {
    call.tell_stage("HOSTS_REDUCESCATTER", "direct exchange");
    return exchange_reduce(channels, call, part_of_rank(call, 1 - rank), own);
  }
  call.tell_stage("HOSTS_REDUCESCATTER", nullptr);
  // Between two hosts a ring has as many steps as the leaders' exchange, and half of its bytes.
  const bool is_half_better = channels.topology.hosts() == 2 && bytes > kMostShortOfTwo;
  const bool may_round = HostReduction(call, 1).may_round();
  if (may_round && (is_half_better || bytes > channels.most_short())) return ring_reducescatter(channels, call);
  std::vector<std::byte> all(bytes);
  if (bytes > channels.most_short()) {
    Call whole = call;
    whole.output = all.data();
    allreduce_without_rounding(channels, whole);
  } else {
    allreduce_short(channels, call, all.data());
  }
  copy_bytes(call.output, all.data() + own.first, own.count);
}

}  // namespace runjob::runtime
