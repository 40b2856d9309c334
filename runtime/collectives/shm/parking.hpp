#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/collectives/shm/layout.hpp"

/// Sleeping until a word in shared memory has reached a value, with a futex, and waking those who do. An event count: the
/// word and the futex are apart, so that the word has one writer and 64 bits.
/// Source  futex(2); Drepper, "Futexes Are Tricky" (2011), sections 3 and 4.
namespace runjob::runtime {

/// Stores `value` and wakes whoever sleeps for it. Costs no system call while nobody sleeps.
void publish(Step& word, std::uint64_t value, Doorbell& doorbell);

/// Wakes everybody who sleeps at `doorbell`, and lets nobody fall asleep who looked at `ended` before this call.
void ring(Doorbell& doorbell);

/// Sleeps until `word` has reached `value` or `ended` is not zero. False when `timeout` was over first.
/// `doorbell`: the one that the word's writer publishes with.
bool sleep_until(const Step& word, std::uint64_t value, Doorbell& doorbell, const std::atomic<std::uint32_t>& ended,
                 std::chrono::milliseconds timeout);

}  // namespace runjob::runtime
