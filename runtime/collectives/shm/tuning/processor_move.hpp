#pragma once

#include <span>

namespace runjob::runtime {

/// Moves the calling thread to a processor that it may run on and that is not one of `taken`. Its affinity is unchanged
/// afterwards. False if there is no such processor or the system refuses.
///
/// It is for two threads that hand work to each other: the system tends to wake a thread on the processor of the thread
/// that wakes it, and it does not separate two threads of which one always sleeps.
/// Threads  any.
bool move_away_from(std::span<const int> taken);

}  // namespace runjob::runtime
