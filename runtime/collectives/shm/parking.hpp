#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/collectives/shm/layout.hpp"

/// Sleeping until something in shared memory has happened, with a futex, and waking those who do. An event count: the
/// words that say what has happened and the futex are apart, so that each word has one writer and 64 bits.
/// Source  futex(2); Drepper, "Futexes Are Tricky" (2011), sections 3 and 4.
namespace runjob::runtime {

// The sleeper says that it sleeps and then looks at the word; the writer writes the word and then looks for sleepers. All
// four are sequentially consistent, so at least one sees the other. Read-modify-writes stand where fences would do, because
// ThreadSanitizer does not see fences.

/// Stores `value` and wakes whoever sleeps for it. Costs no system call while nobody sleeps.
void publish(Step& word, std::uint64_t value, Doorbell& doorbell);

/// Wakes everybody who sleeps at `doorbell`, and lets nobody fall asleep who looked before this call.
void ring(Doorbell& doorbell);
/// ring(), unless nobody sleeps there. After a sequentially consistent store of what the sleepers look at.
void ring_if_needed(Doorbell& doorbell);

/// One sleep of sleep_until(): until `doorbell` has rung since its `rings` were `seen`, or for no reason. False when
/// `deadline` was first.
bool sleep_once(Doorbell& doorbell, std::uint32_t seen, std::chrono::steady_clock::time_point deadline);

/// Sleeps until `is_over()`, whose loads are sequentially consistent. False when `deadline` was first.
/// `doorbell`: the one that whoever makes it true rings.
template <class IsOver>
bool sleep_until(IsOver is_over, Doorbell& doorbell, std::chrono::steady_clock::time_point deadline) {
  doorbell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool in_time = true;
  for (;;) {
    const std::uint32_t seen =
        doorbell.rings.load(std::memory_order_seq_cst);  // before the look: a ring after it counts
    if (is_over()) break;
    in_time = sleep_once(doorbell, seen, deadline);
    if (!in_time) break;
  }
  doorbell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return in_time;
}

}  // namespace runjob::runtime
