#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/collectives/shm/memory/layout.hpp"

/// Sleeping until a field in shared memory has changed, with a futex, and waking the threads that sleep. It is an event
/// count: the fields and the futex are apart, so that each field has one writer and 64 bits.
/// Threads  any, of any process that has mapped the segment.
/// Source   futex(2); Drepper, "Futexes Are Tricky" (2011), sections 3 and 4.
namespace runjob::runtime {

// The sleeper counts itself and then looks at the field; the writer writes the field and then looks for sleepers. All
// four accesses are sequentially consistent, so at least one of the two sees the other. They are read-modify-writes
// where fences would do, because ThreadSanitizer does not see fences.

/// Stores `value` and wakes the threads that sleep at `doorbell`. Makes no system call if there are none.
void publish(Step& field, std::uint64_t value, Doorbell& doorbell);

/// Wakes all threads that sleep at `doorbell`. A thread that has looked before this call does not fall asleep.
void ring(Doorbell& doorbell);
/// Calls ring() if a thread sleeps there. The change that the sleepers wait for must be stored before, sequentially
/// consistent.
void ring_if_needed(Doorbell& doorbell);

/// One sleep of sleep_until(): until `doorbell` has rung since its `rings` were `seen`, or spuriously. False if the
/// deadline came first.
bool sleep_once(Doorbell& doorbell, std::uint32_t seen, std::chrono::steady_clock::time_point deadline);

/// Sleeps until `is_over()`, whose loads must be sequentially consistent. False if the deadline came first.
/// `doorbell`: the one that rings when the result of `is_over()` may have changed.
template <class IsOver>
bool sleep_until(IsOver is_over, Doorbell& doorbell, std::chrono::steady_clock::time_point deadline) {
  doorbell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool in_time = true;
  for (;;) {
    // Loaded before the look, so that a ring after the look counts.
    const std::uint32_t seen = doorbell.rings.load(std::memory_order_seq_cst);
    if (is_over()) break;
    in_time = sleep_once(doorbell, seen, deadline);
    if (!in_time) break;
  }
  doorbell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return in_time;
}

}  // namespace runjob::runtime
