#include "runtime/collectives/shm/group.hpp"

#include <algorithm>
#include <sched.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/shm/processor_move.hpp"

namespace runjob::runtime {
namespace {

/// Tells the processor that this is a loop of looks.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // what "yield" should do, but does not
#endif
}

bool has_come(const Step& word, std::uint64_t value) {
  return word.load(std::memory_order_acquire) >= value;
}

/// 1 + its number.
std::uint32_t this_processor() {
  return static_cast<std::uint32_t>(::sched_getcpu() + 1);
}

}  // namespace

Patience Patience::for_ranks(int local_ranks, double processors) {
  constexpr std::chrono::microseconds kAsLongAsWaking{200};
  constexpr int kYields = 32;
  return {local_ranks <= processors ? kAsLongAsWaking : std::chrono::microseconds(0), kYields};
}

void throw_rank_timeout(int rank, std::chrono::milliseconds timeout) {
  throw Error(Errc::kTimeout,
              fmt::format("waited {:.3g} s for rank {}; it may be stopped or very slow; RUNJOB_GLOO_TIMEOUT_SECONDS "
                          "allows more",
                          std::chrono::duration<double>(timeout).count(), rank));
}

void throw_rank_lost(int rank) {
  throw Error(Errc::kPeerLost, fmt::format("rank {} has left", rank));
}

Group::Group(void* segment, const Layout& layout, const GroupOptions& options)
    : segment_(static_cast<std::byte*>(segment)), layout_(layout), options_(options), spin_(options.patience.spin) {}

void Group::publish(Step& word, std::uint64_t value) {
  // To ask where it runs takes as long as all the rest; who waits says it anyway.
  constexpr std::uint32_t kSometimes = 16;
  if (publications_++ % kSometimes == 0) say_processor();
  runtime::publish(word, value, own().doorbell);
}

void Group::check() const {
  const std::uint32_t by = header().ended_by.load(std::memory_order_acquire);
  if (by != 0) throw Error(Errc::kAborted, fmt::format("rank {} ended the exchange", name(static_cast<int>(by) - 1)));
  if (is_cancelled()) throw Error(Errc::kAborted, "this rank leaves the exchange");
}

void Group::end() {
  std::uint32_t nobody = 0;
  header().ended_by.compare_exchange_strong(nobody, static_cast<std::uint32_t>(rank()) + 1, std::memory_order_seq_cst);
  for (int rank = 0; rank < size(); ++rank) ring(words(rank).doorbell);
  ring_next_round();
}

void Group::leave() {
  own().left.store(1, std::memory_order_seq_cst);
  for (int rank = 0; rank < size(); ++rank) ring(words(rank).doorbell);  // wherever others wait for all
  ring_next_round();
}

void Group::cancel() {
  cancelled_.store(true, std::memory_order_seq_cst);
  for (int rank = 0; rank < size(); ++rank) ring(words(rank).doorbell);  // wherever a thread of this rank may sleep
  ring_next_round();
}

void Group::wait_slowly(int peer, const Step& word, std::uint64_t value) {
  if (!wait_until(peer, word, value, Clock::now() + options_.timeout)) throw_timeout(peer);
}

void Group::throw_timeout(int peer) const {
  throw_rank_timeout(name(peer), options_.timeout);
}

void Group::throw_lost(int peer) const {
  throw_rank_lost(name(peer));
}

bool Group::look(int peer, const Step& word, std::uint64_t value) {
  if (has_come(word, value) || spin(peer, word, value)) return true;
  for (int i = 0; i < options_.patience.yields; ++i) {
    ::sched_yield();
    if (!has_come(word, value)) continue;
    if (std::exchange(spun_since_, {}) != Clock::time_point()) spin_.gave_way();
    return true;
  }
  return false;
}

bool Group::sleep(int peer, const Step& word, std::uint64_t value, Clock::time_point deadline) {
  const auto is_over = [&] {
    return word.load(std::memory_order_seq_cst) >= value || has_ended() || is_cancelled() || has_left(peer);
  };
  const bool in_time = sleep_until(is_over, words(peer).doorbell, deadline);
  if (has_come(word, value)) {
    learn_from_sleep();
    return true;
  }
  check();
  if (has_left(peer)) throw_lost(peer);
  return in_time;  // true is impossible: one of the reasons above ended the sleep
}

bool Group::spin(int peer, const Step& word, std::uint64_t value) {
  constexpr int kLooksBetweenClocks = 32;
  spun_since_ = {};
  if (!spin_.is_allowed()) return false;
  // The clock is not asked before the first looks: that takes as long as a small message.
  Clock::time_point now, end;
  do {
    for (int i = 0; i < kLooksBetweenClocks; ++i) {
      if (has_come(word, value)) {
        spin_.came_in_time();
        return true;
      }
      pause();
    }
    say_processor();
    if (shares_processor(peer) && !part_from(peer)) return false;
    now = Clock::now();
    if (end == Clock::time_point()) {
      spun_since_ = now;
      end = now + spin_.time();
    }
  } while (now < end && !has_ended() && !is_cancelled());
  return has_come(word, value);
}

/// Where this rank runs now.
void Group::say_processor() {
  std::atomic<std::uint32_t>& processor = own().processor;
  const std::uint32_t now = this_processor();
  if (processor.load(std::memory_order_relaxed) != now) processor.store(now, std::memory_order_relaxed);
}

/// As both have said last.
bool Group::shares_processor(int peer) const {
  return words(peer).processor.load(std::memory_order_relaxed) == own().processor.load(std::memory_order_relaxed);
}

/// One of two ranks that go on sharing a processor, although there is one for each, moves to another. False: not now.
bool Group::part_from(int peer) {
  constexpr int kOften = 32;
  constexpr std::chrono::milliseconds kSettling{10};  // until the system may have moved others as well
  if (rank() < peer || ++shared_looks_ < kOften) return false;
  shared_looks_ = 0;
  const Clock::time_point now = Clock::now();
  if (now < next_move_) return false;
  next_move_ = now + kSettling;
  std::vector<int> taken;
  for (int rank = 0; rank < size(); ++rank) {
    taken.push_back(static_cast<int>(words(rank).processor.load(std::memory_order_relaxed)) - 1);
  }
  return move_away_from(taken);
}

void Group::learn_from_sleep() {
  if (spun_since_ != Clock::time_point()) spin_.came_later(Clock::now() - spun_since_);
  spun_since_ = {};
}

}  // namespace runjob::runtime
