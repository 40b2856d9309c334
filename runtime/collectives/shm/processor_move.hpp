#pragma once

#include <span>

namespace runjob::runtime {

/// Moves the calling thread to a processor that it may run on and that is not one of `taken`; its affinity is as before
/// afterwards. False when there is none, or the system does not want to.
/// For two threads that hand work to each other: the system tends to wake a thread on the processor of the one that wakes it, and
/// sees no reason to part two of which one always sleeps.
bool move_away_from(std::span<const int> taken);

}  // namespace runjob::runtime
