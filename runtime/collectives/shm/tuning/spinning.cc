#include "runtime/collectives/shm/tuning/spinning.hpp"

#include <sched.h>
#include <utility>

#include "runtime/collectives/shm/tuning/processor_move.hpp"

namespace runjob::runtime {
namespace {

/// Tells the processor that it is in a spin loop.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // "yield" does nothing on most processors
#endif
}

bool has_reached(const Step& field, std::uint64_t value) {
  return field.load(std::memory_order_acquire) >= value;
}

}  // namespace

bool Spinning::wait(int peer, const Step& field, std::uint64_t value, const std::atomic<bool>& cancelled) {
  constexpr int kLooksBetweenClocks = 32;
  const std::atomic<std::uint32_t>& ended_by = view_.header().ended_by;
  spun_since_ = {};
  if (!time_.is_allowed()) return false;
  // The first looks come before the clock is read, because reading the clock takes as long as a small message.
  Clock::time_point now, end;
  do {
    for (int i = 0; i < kLooksBetweenClocks; ++i) {
      if (has_reached(field, value)) {
        time_.reached_while_spinning();
        return true;
      }
      pause();
    }
    report_processor();
    if (shares_processor(peer) && !move_away(peer)) return false;
    now = Clock::now();
    if (end == Clock::time_point()) {
      spun_since_ = now;
      end = now + time_.time();
    }
  } while (now < end && ended_by.load(std::memory_order_seq_cst) == 0 && !cancelled.load(std::memory_order_seq_cst));
  return has_reached(field, value);
}

void Spinning::reached_after_yield() {
  if (std::exchange(spun_since_, {}) != Clock::time_point()) time_.reached_after_yield();
}

void Spinning::reached_after_sleep() {
  if (spun_since_ != Clock::time_point()) time_.reached_after_sleep(Clock::now() - spun_since_);
  spun_since_ = {};
}

void Spinning::report_processor() {
  std::atomic<std::uint32_t>& processor = view_.fields(rank_).processor;
  const auto now = static_cast<std::uint32_t>(::sched_getcpu() + 1);
  if (processor.load(std::memory_order_relaxed) != now) processor.store(now, std::memory_order_relaxed);
}

/// Compares the processors that both ranks have reported last.
bool Spinning::shares_processor(int peer) const {
  return view_.fields(peer).processor.load(std::memory_order_relaxed) ==
         view_.fields(rank_).processor.load(std::memory_order_relaxed);
}

/// Moves this rank to another processor if it is the one of the two that moves, and if they have shared one for long.
/// False when it has not moved.
bool Spinning::move_away(int peer) {
  constexpr int kOften = 32;
  constexpr std::chrono::milliseconds kSettling{10};  // until the system may have moved others as well
  if (rank_ < peer || ++shared_looks_ < kOften) return false;
  shared_looks_ = 0;
  const Clock::time_point now = Clock::now();
  if (now < next_move_) return false;
  next_move_ = now + kSettling;
  taken_.clear();
  for (int rank = 0; rank < view_.size(); ++rank) {
    taken_.push_back(static_cast<int>(view_.fields(rank).processor.load(std::memory_order_relaxed)) - 1);
  }
  return move_away_from(taken_);
}

}  // namespace runjob::runtime
