#include "runtime/collectives/hierarchical/exchanges/ring_reduction.hpp"

#include <optional>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_reduction.hpp"
#include "runtime/collectives/hierarchical/exchanges/pipeline.hpp"
#include "runtime/collectives/hierarchical/exchanges/ring_exchange.hpp"

namespace runjob::runtime {
namespace {

/// The part that both have in common: rounds in which sums grow, in lanes of scratch memory.
class Summing {
 public:
  Summing(HostChannels& channels, const Call& call, const RingPlan& plan, RingWalk& walk)
      : channels_(channels),
        walk_(walk),
        ring_(channels.local.ring),
        rounds_(static_cast<std::size_t>(channels.topology.hosts())),
        element_(size_of(call.dtype)),
        input_(static_cast<const std::byte*>(call.input)),
        reduction_(call, channels.topology.size()),
        most_(most_bytes(plan)),
        inputs_(static_cast<std::size_t>(ring_.size())) {
    if (!walk.is_column()) return;
    arrivals_ = channels.messages.reserve(Lanes::kNumber * most_);
    sums_ = channels.sums.reserve(Lanes::kNumber * most_);
    arriving_.emplace(*channels.transport, arrivals_, Lanes::kNumber * most_);
    leaving_.emplace(*channels.transport, sums_, Lanes::kNumber * most_);
  }

  bool is_summing(std::size_t item) const { return walk_.round(item) < rounds_; }
  bool completes(std::size_t item) const { return walk_.round(item) + 1 == rounds_; }

  /// Copies the bytes that other ranks of this host will add into this rank's slot.
  void give(std::size_t item, std::uint64_t step) const {
    if (channels_.is_alone_on_host()) return;
    const Range segment = walk_.segment(item), own = walk_.own_part(item);
    std::byte* slot = ring_.cell(ring_.rank(), step);
    if (own.count == 0) return copy(slot, segment.first, segment.count);
    const std::size_t before = own.first - segment.first, after = own.first + own.count;
    copy(slot, segment.first, before);
    copy(slot + (after - segment.first), after, segment.first + segment.count - after);
  }

  void receive(std::size_t item) {
    if (walk_.own_part(item).count > 0) walk_.receive(item, *arriving_, lane(item));
  }

  /// Adds this host's inputs. Complete sums go to `result`, others to the right neighbour.
  void add(std::size_t item, std::uint64_t step, std::byte* result) {
    const Range part = walk_.own_part(item);
    const bool is_last = completes(item);
    const void* partial = nullptr;
    if (walk_.round(item) > 0) {
      walk_.wait_received(item, *arriving_);
      partial = arrivals_ + lane(item);
    }
    for (int rank = 0; rank < ring_.size(); ++rank) {
      if (rank != ring_.rank()) ring_.wait_filled(rank, step);
      inputs_[static_cast<std::size_t>(rank)] =
          rank == ring_.rank() ? input_ + part.first : walk_.in_slot(ring_.cell(rank, step), item, part);
    }
    if (!is_last) (*leaving_)[item].wait_sent().throw_if_failed();
    reduction_.add(is_last ? result : sums_ + lane(item), partial, inputs_, part.count / element_, is_last);
    if (!is_last) walk_.send(item, *leaving_, lane(item));
  }

  void wait_all_sent() {
    if (leaving_) leaving_->wait_all_sent();
  }

 private:
  static std::size_t most_bytes(const RingPlan& plan) {
    std::size_t most = 0;
    for (const auto& chunk : plan.segments)
      for (const Range& segment : chunk) most = std::max(most, segment.count);
    return most;
  }
  std::size_t lane(std::size_t item) const { return item % Lanes::kNumber * most_; }
  void copy(std::byte* to, std::size_t first, std::size_t count) const { copy_bytes(to, input_ + first, count); }

  HostChannels& channels_;
  RingWalk& walk_;
  Ring& ring_;
  const std::size_t rounds_, element_;
  const std::byte* const input_;
  const HostReduction reduction_;
  const std::size_t most_;           ///< bytes of a lane
  std::vector<const void*> inputs_;  ///< by local rank
  std::byte* arrivals_ = nullptr;
  std::byte* sums_ = nullptr;
  std::optional<Lanes> arriving_, leaving_;
};

/// Equal chunks of whole cache lines, one for each host.
RingPlan even_plan(const HostChannels& channels, std::size_t bytes) {
  std::vector<std::vector<Range>> chunks;
  std::size_t largest = 0;
  for (int host = 0; host < channels.topology.hosts(); ++host) {
    const Range chunk = part_of(bytes, 1, host, channels.topology.hosts());
    chunks.push_back(joined({chunk}));
    largest = std::max(largest, chunk.count);
  }
  return RingPlan::cut(chunks, segment_bytes(largest, channels.local.ring.cell_bytes()));
}

class Allreduce {
 public:
  Allreduce(HostChannels& channels, const Call& call)
      : channels_(channels),
        ring_(channels.local.ring),
        bytes_(call.count * size_of(call.dtype)),
        output_(static_cast<std::byte*>(call.output)),
        plan_(even_plan(channels, bytes_)),
        walk_(channels, plan_, channels.costs.columns, 0, 2 * static_cast<std::size_t>(channels.topology.hosts()) - 2),
        summing_(channels, call, plan_, walk_) {
    if (walk_.is_column()) results_.emplace(*channels.transport, output_, bytes_);
  }

  void run() {
    if (walk_.is_column()) {
      for (std::size_t i = 0; i < std::min(walk_.items(), Lanes::kNumber - 1); ++i) receive(i);
    }
    run_pipeline(
        ring_, walk_.items(),
        [this](std::size_t i, std::uint64_t step) {
          if (summing_.is_summing(i)) summing_.give(i, step);
        },
        [this](std::size_t i, std::uint64_t step) { work(i, step); },
        [this](std::size_t i, std::uint64_t step) { take(i, step); });
    summing_.wait_all_sent();
    if (results_) results_->wait_all_sent();
  }

 private:
  bool has_result(std::size_t i) const { return !summing_.is_summing(i) || summing_.completes(i); }

  /// Complete sums arrive in the output itself. They are complete only when this rank's input there has been used.
  void receive(std::size_t i) {
    const Range part = walk_.own_part(i);
    if (part.count == 0 || walk_.is_first(i)) return;
    if (summing_.is_summing(i)) return summing_.receive(i);
    walk_.receive(i, *results_, part.first);
  }

  void work(std::size_t i, std::uint64_t step) {
    if (!walk_.is_column()) return;
    const std::size_t next = i + Lanes::kNumber - 1;
    if (next < walk_.items()) receive(next);
    const Range part = walk_.own_part(i);
    if (part.count == 0) return;
    if (summing_.is_summing(i)) {
      summing_.add(i, step, output_ + part.first);
    } else {
      walk_.wait_received(i, *results_);
    }
    if (!has_result(i)) return;
    if (!walk_.is_last(i)) {
      (*results_)[i].wait_sent().throw_if_failed();
      walk_.send(i, *results_, part.first);
    }
    if (channels_.is_alone_on_host()) return;
    copy_bytes(walk_.in_slot(ring_.cell(ring_.rank(), step), i, part), output_ + part.first, part.count);
  }

  void take(std::size_t i, std::uint64_t step) {
    if (!has_result(i)) return;
    for (int column = 0; column < walk_.columns(); ++column) {
      if (column == ring_.rank()) continue;
      const Range part = walk_.part(i, column);
      if (part.count == 0) continue;
      ring_.wait_reduced(column, step);
      copy_bytes(output_ + part.first, walk_.in_slot(ring_.cell(column, step), i, part), part.count);
    }
  }

  HostChannels& channels_;
  Ring& ring_;
  const std::size_t bytes_;
  std::byte* const output_;
  const RingPlan plan_;
  RingWalk walk_;
  Summing summing_;
  std::optional<Lanes> results_;
};

/// Each rank's part of the input, in bytes.
std::vector<Range> parts_of(const Call& call) {
  std::vector<Range> parts;
  std::size_t before = 0;
  for (const std::size_t count : call.counts) {
    parts.push_back({before, count * size_of(call.dtype)});
    before += parts.back().count;
  }
  return parts;
}

RingPlan plan_of_hosts(const HostChannels& channels, const std::vector<Range>& parts) {
  std::vector<std::vector<Range>> chunks;
  std::size_t largest = 0;
  for (int host = 0; host < channels.topology.hosts(); ++host) {
    std::vector<Range> ranges;
    for (const int rank : channels.topology.ranks(host)) ranges.push_back(parts[static_cast<std::size_t>(rank)]);
    chunks.push_back(joined(ranges));
    for (const Range& range : chunks.back()) largest = std::max(largest, range.count);
  }
  return RingPlan::cut(chunks, segment_bytes(largest, channels.local.ring.cell_bytes()));
}

class Reducescatter {
 public:
  Reducescatter(HostChannels& channels, const Call& call)
      : ring_(channels.local.ring),
        own_(parts_of(call)[static_cast<std::size_t>(channels.topology.rank())]),
        output_(static_cast<std::byte*>(call.output)),
        plan_(plan_of_hosts(channels, parts_of(call))),
        walk_(channels, plan_, channels.costs.columns, 0, static_cast<std::size_t>(channels.topology.hosts()) - 1),
        summing_(channels, call, plan_, walk_) {}

  void run() {
    if (walk_.is_column()) {
      for (std::size_t i = 0; i < std::min(walk_.items(), Lanes::kNumber - 1); ++i) receive(i);
    }
    run_pipeline(
        ring_, walk_.items(), [this](std::size_t i, std::uint64_t step) { summing_.give(i, step); },
        [this](std::size_t i, std::uint64_t step) { work(i, step); },
        [this](std::size_t i, std::uint64_t step) { take(i, step); });
    summing_.wait_all_sent();
  }

 private:
  void receive(std::size_t i) {
    if (!walk_.is_first(i)) summing_.receive(i);
  }

  void work(std::size_t i, std::uint64_t step) {
    if (!walk_.is_column()) return;
    const std::size_t next = i + Lanes::kNumber - 1;
    if (next < walk_.items()) receive(next);
    const Range part = walk_.own_part(i);
    if (part.count == 0) return;
    summing_.add(i, step, is_own(part) ? in_output(part) : walk_.in_slot(ring_.cell(ring_.rank(), step), i, part));
  }

  void take(std::size_t i, std::uint64_t step) {
    if (!summing_.completes(i)) return;
    for (int column = 0; column < walk_.columns(); ++column) {
      const Range mine = overlap(walk_.part(i, column), own_);
      if (mine.count == 0 || (column == ring_.rank() && is_own(walk_.part(i, column)))) continue;
      ring_.wait_reduced(column, step);
      copy_bytes(in_output(mine), walk_.in_slot(ring_.cell(column, step), i, mine), mine.count);
    }
  }

  /// True if no other rank gets any of this result, as when the columns divide a short chunk like the ranks do.
  bool is_own(const Range& part) const { return overlap(part, own_) == part; }
  std::byte* in_output(const Range& part) const { return output_ + (part.first - own_.first); }

  Ring& ring_;
  const Range own_;
  std::byte* const output_;
  const RingPlan plan_;
  RingWalk walk_;
  Summing summing_;
};

}  // namespace

void ring_allreduce(HostChannels& channels, const Call& call) {
  Allreduce(channels, call).run();
}

void ring_reducescatter(HostChannels& channels, const Call& call) {
  Reducescatter(channels, call).run();
}

}  // namespace runjob::runtime
