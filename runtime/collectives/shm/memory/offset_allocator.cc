#include "runtime/collectives/shm/memory/offset_allocator.hpp"

#include <iterator>

namespace runjob::runtime {

OffsetAllocator::OffsetAllocator(std::size_t window) {
  if (window >= kUnit) free_.emplace(0, window / kUnit * kUnit);
}

std::optional<std::size_t> OffsetAllocator::allocate(std::size_t bytes) {
  const std::size_t wanted = bytes == 0 ? kUnit : (bytes + kUnit - 1) / kUnit * kUnit;
  if (wanted < bytes) return std::nullopt;  // overflow
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, length] = *range;
    if (length < wanted) continue;
    free_.erase(range);
    if (length > wanted) free_.emplace(offset + wanted, length - wanted);
    used_.emplace(offset, wanted);
    return offset;
  }
  return std::nullopt;
}

std::optional<Range> OffsetAllocator::free(std::size_t offset) {
  const auto found = used_.find(offset);
  if (found == used_.end()) return std::nullopt;
  const Range freed{offset, found->second};
  used_.erase(found);
  auto range = free_.emplace(freed.first, freed.count).first;
  const auto next = std::next(range);
  if (next != free_.end() && next->first == offset + freed.count) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range != free_.begin()) {
    const auto before = std::prev(range);
    if (before->first + before->second == offset) {
      before->second += range->second;
      free_.erase(range);
    }
  }
  return freed;
}

}  // namespace runjob::runtime
