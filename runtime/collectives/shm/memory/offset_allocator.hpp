#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "runtime/collectives/shm/memory/pieces.hpp"

namespace runjob::runtime {

/// Keeps account of the parts of a window of bytes that are in use. It gives out the lowest free range that is large
/// enough, so that the end of the window stays untouched. A freed range joins its free neighbours. It never touches the
/// memory.
/// Units    bytes; ranges that are given out begin and end at multiples of kUnit.
/// Threads  one at a time.
/// Cost     linear in the number of free ranges.
class OffsetAllocator {
 public:
  static constexpr std::size_t kUnit = 4096;  // a page: the system can take back the memory of a freed range

  explicit OffsetAllocator(std::size_t window);

  /// The offset of a range of at least `bytes` bytes, which is now in use; nullopt if no free range is large enough.
  std::optional<std::size_t> allocate(std::size_t bytes);

  /// Frees a range that allocate() has returned. Returns the range; nullopt if no range in use begins there.
  std::optional<Range> free(std::size_t offset);

  /// The free ranges, offset -> bytes. No two of them touch.
  const std::map<std::size_t, std::size_t>& free_ranges() const { return free_; }

 private:
  std::map<std::size_t, std::size_t> free_, used_;
};

}  // namespace runjob::runtime
