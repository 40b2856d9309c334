#include "runtime/collectives/hierarchical/exchanges/ring_exchange.hpp"

#include <algorithm>

namespace runjob::runtime {

RingPlan RingPlan::cut(const std::vector<std::vector<Range>>& chunks, std::size_t most_bytes) {
  RingPlan plan;
  for (const std::vector<Range>& chunk : chunks) {
    std::vector<Range>& segments = plan.segments.emplace_back();
    for (const Range& range : chunk) {
      const Pieces pieces(range.count, most_bytes);
      for (std::size_t i = 0; i < pieces.number(); ++i)
        segments.push_back({range.first + pieces[i].first, pieces[i].count});
    }
    plan.width = std::max(plan.width, segments.size());
  }
  return plan;
}

std::size_t segment_bytes(std::size_t chunk_bytes, std::size_t most) {
  constexpr std::size_t kLeast = 32u << 10;  // below it a message costs more than its bytes
  constexpr std::size_t kWanted = 4;
  return piece_bytes(chunk_bytes, kWanted, kLeast, most);
}

std::vector<Range> joined(const std::vector<Range>& ranges) {
  std::vector<Range> result;
  for (const Range& range : ranges) {
    if (range.count == 0) continue;
    if (!result.empty() && result.back().first + result.back().count == range.first) {
      result.back().count += range.count;
    } else {
      result.push_back(range);
    }
  }
  return result;
}

Range overlap(const Range& a, const Range& b) {
  const std::size_t first = std::max(a.first, b.first), end = std::min(a.first + a.count, b.first + b.count);
  return first < end ? Range{first, end - first} : Range{};
}

RingWalk::RingWalk(HostChannels& channels, const RingPlan& plan, int columns, std::size_t first_round,
                   std::size_t last_round)
    : channels_(channels),
      plan_(plan),
      columns_(columns),
      local_rank_(channels.topology.local_rank()),
      host_(static_cast<std::size_t>(channels.topology.host())),
      hosts_(static_cast<std::size_t>(channels.topology.hosts())),
      first_round_(first_round),
      last_round_(last_round),
      tags_(channels.next_tags()) {
  for (std::size_t segment = 0; segment < std::min(kBlock, plan.width); ++segment)
    items_.push_back({first_round, segment});
  for (std::size_t begin = 0; begin < plan.width; begin += kBlock) add_block(begin);
}

/// All rounds of a block but the first, and that of the next block.
void RingWalk::add_block(std::size_t begin) {
  const std::size_t end = std::min(begin + kBlock, plan_.width);
  for (std::size_t round = first_round_ + 1; round <= last_round_; ++round) {
    for (std::size_t segment = begin; segment < end; ++segment) {
      const std::size_t next = segment + kBlock;
      if (round == last_round_ && next < plan_.width) items_.push_back({first_round_, next});
      items_.push_back({round, segment});
    }
  }
}

Range RingWalk::segment(std::size_t item) const {
  const std::size_t chunk = (host_ + 2 * hosts_ - 1 - round(item)) % hosts_;
  return plan_.segment(chunk, items_[item].segment);
}

Range RingWalk::part(std::size_t item, int column) const {
  const Range whole = segment(item);
  Range part = part_of(whole.count, 1, column, columns_);
  part.first += whole.first;
  return part;
}

Range RingWalk::own_part(std::size_t item) const {
  return is_column() ? part(item, local_rank_) : Range{};
}

void RingWalk::receive(std::size_t item, Lanes& lanes, std::size_t offset) {
  lanes[item].receive(channels_.left(), tag(round(item), item), offset, own_part(item).count).throw_if_failed();
}

void RingWalk::send(std::size_t item, Lanes& lanes, std::size_t offset) {
  lanes[item].send(channels_.right(), tag(round(item) + 1, item), offset, own_part(item).count).throw_if_failed();
}

}  // namespace runjob::runtime
