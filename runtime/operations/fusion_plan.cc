#include "runtime/operations/fusion_plan.hpp"

#include <algorithm>

namespace runjob::runtime {
namespace {

/// A batch that has room for more items of its key.
struct OpenBatch {
  FusionKey key;
  std::size_t index = 0;  ///< in the plan
  std::size_t bytes = 0;
  std::size_t operation = 0;  ///< the operation of its last item
};

/// The most bytes of a batch.
std::size_t most_bytes(const FusionKey& key, const FusionLimits& limits) {
  return key.memory == MemoryKind::kHost ? limits.buffer_bytes : limits.device_launch_bytes;
}

bool is_fused(const FusionItem& item, const FusionLimits& limits) {
  if (!item.key || item.bytes > most_bytes(*item.key, limits)) return false;
  return item.key->memory != MemoryKind::kHost || item.bytes < limits.fuses_below;
}

/// Bytes of an item and of those that follow it with its operation and key; of the item alone when they are too much
/// for one buffer.
std::size_t bytes_to_keep_together(std::span<const FusionItem> items, std::size_t first, const FusionLimits& limits) {
  std::size_t sum = 0;
  for (std::size_t i = first; i < items.size() && items[i].operation == items[first].operation; ++i) {
    if (items[i].key == items[first].key && is_fused(items[i], limits)) sum += items[i].bytes;
    if (sum > most_bytes(*items[first].key, limits)) return items[first].bytes;
  }
  return sum;
}

}  // namespace

std::vector<std::vector<std::size_t>> plan_fusion(std::span<const FusionItem> items, const FusionLimits& limits) {
  std::vector<std::vector<std::size_t>> plan;
  std::vector<OpenBatch> open;  // one for each key
  for (std::size_t i = 0; i < items.size(); ++i) {
    const FusionItem& item = items[i];
    if (!is_fused(item, limits)) {
      plan.push_back({i});
      continue;
    }
    auto batch = std::find_if(open.begin(), open.end(), [&](const OpenBatch& other) { return other.key == *item.key; });
    const bool is_new = batch == open.end();
    if (is_new) batch = open.insert(open.end(), OpenBatch{*item.key, 0, 0, item.operation});
    const bool is_first = is_new || batch->operation != item.operation;
    const std::size_t needed = is_first ? bytes_to_keep_together(items, i, limits) : item.bytes;
    if (is_new || batch->bytes + needed > most_bytes(*item.key, limits)) {
      batch->index = plan.size();
      batch->bytes = 0;
      plan.emplace_back();
    }
    plan[batch->index].push_back(i);
    batch->bytes += item.bytes;
    batch->operation = item.operation;
  }
  return plan;
}

}  // namespace runjob::runtime
