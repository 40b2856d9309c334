#pragma once

#include <cstddef>

#include "runtime/collectives/shm/ring.hpp"

namespace runjob::runtime {

/// Runs items 0 to `count` - 1 through three stages on every rank of a host, with one item in each stage at a time:
/// `give(i, step)` writes this rank's slot, for the ranks that work on the item; `work(i, step)` may wait for the slots
/// of others and for other hosts, and leaves in its own slot the bytes that the host's ranks need; `take(i, step)`
/// waits for those and copies them out. A rank gives item i before it works on item i - 1. Otherwise other hosts would
/// wait for item i while this host waits for them in the work on item i - 1.
template <class Give, class Work, class Take>
void run_pipeline(Ring& ring, std::size_t count, Give give, Work work, Take take) {
  const std::uint64_t first = ring.take_steps(count);
  for (std::size_t i = 0; i < count + 2; ++i) {
    if (i < count) {
      ring.wait_free(first + i);
      give(i, first + i);
      ring.filled(first + i);
    }
    if (i >= 1 && i - 1 < count) {
      work(i - 1, first + i - 1);
      ring.reduced(first + i - 1);
    }
    if (i >= 2) {
      take(i - 2, first + i - 2);
      ring.done(first + i - 2);
    }
  }
}

}  // namespace runjob::runtime
