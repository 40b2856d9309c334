#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "runtime/collectives/shm/pieces.hpp"

namespace runjob::runtime {

/// Which parts of a window of bytes are in use: the lowest place that fits is given out, so that the window's end stays
/// untouched, and what is freed joins its neighbours. Bookkeeping alone; it never looks at the memory.
/// Units    bytes; what is given out begins and ends at multiples of kUnit.
/// Threads  one at a time.
/// Cost     linear in the number of free ranges.
class OffsetAllocator {
 public:
  static constexpr std::size_t kUnit = 4096;  // a page: what is freed can be given back

  explicit OffsetAllocator(std::size_t window);

  /// Where at least `bytes` are free now; nullopt when there is no such place.
  std::optional<std::size_t> allocate(std::size_t bytes);

  /// Gives back what allocate() returned. The part that is free now; nullopt when nothing was given out there.
  std::optional<Range> free(std::size_t offset);

  /// Offset -> bytes. No two of them touch.
  const std::map<std::size_t, std::size_t>& free_ranges() const { return free_; }

 private:
  std::map<std::size_t, std::size_t> free_, used_;
};

}  // namespace runjob::runtime
