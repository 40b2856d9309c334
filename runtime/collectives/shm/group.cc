#include "runtime/collectives/shm/group.hpp"

#include <sched.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/process/time_limit.hpp"

namespace runjob::runtime {

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
    : SegmentView(segment, layout), options_(options), spinning_(*this, options.rank, options.patience.spin) {}

void Group::publish(Step& field, std::uint64_t value) {
  // The system call that finds the processor takes as long as all the rest; a rank that waits reports it as well.
  constexpr std::uint32_t kSometimes = 16;
  if (publications_++ % kSometimes == 0) spinning_.report_processor();
  runtime::publish(field, value, own().doorbell);
}

void Group::check() const {
  const std::uint32_t by = header().ended_by.load(std::memory_order_acquire);
  if (by != 0) throw Error(Errc::kAborted, fmt::format("rank {} ended the exchange", name(static_cast<int>(by) - 1)));
  if (is_cancelled()) throw Error(Errc::kAborted, "this rank leaves the exchange");
}

/// Wakes every thread of every rank, wherever it sleeps.
void Group::ring_all() {
  for (int rank = 0; rank < size(); ++rank) ring(fields(rank).doorbell);
  ring_next_round();
}

void Group::end() {
  std::uint32_t no_rank = 0;
  header().ended_by.compare_exchange_strong(no_rank, static_cast<std::uint32_t>(rank()) + 1, std::memory_order_seq_cst);
  ring_all();
}

void Group::leave() {
  own().left.store(1, std::memory_order_seq_cst);
  ring_all();
}

void Group::cancel() {
  cancelled_.store(true, std::memory_order_seq_cst);
  ring_all();
}

void Group::throw_timeout(int peer) const {
  throw_rank_timeout(name(peer), options_.timeout);
}

void Group::throw_lost(int peer) const {
  throw_rank_lost(name(peer));
}

void Group::wait_slowly(int peer, const Step& field, std::uint64_t value) {
  if (options_.work != nullptr && work_until_reached(peer, field, value)) return;
  TimeLimit limit(options_.timeout, Clock::now());
  if (look(peer, field, value)) return;
  const auto has_reached = [&] { return field.load(std::memory_order_seq_cst) >= value; };
  for (;;) {
    sleep_at(peer, has_reached, limit.next_look());
    if (has_reached()) return;
    if (limit.is_over(Clock::now())) throw_timeout(peer);
  }
}

/// Waits while there is work: in turn it does some and looks at the field. False when the work is finished first.
/// It never sleeps at a doorbell alone: the peer may wait, through others, for what this work brings.
bool Group::work_until_reached(int peer, const Step& field, std::uint64_t value) {
  constexpr std::chrono::microseconds kShortest{50}, kLongest{1000};
  TimeLimit limit(options_.timeout, Clock::now());
  const auto has_reached = [&] { return field.load(std::memory_order_seq_cst) >= value; };
  std::chrono::microseconds pause{0};
  for (int i = 0; options_.work->move(); ++i) {
    if (has_reached()) return true;
    if (i < options_.patience.yields) {
      ::sched_yield();
      continue;
    }
    check();
    if (has_left(peer) && !has_reached()) throw_lost(peer);
    if (limit.is_over(Clock::now())) throw_timeout(peer);
    pause = std::clamp(2 * pause, kShortest, kLongest);
    options_.work->pause(pause);
  }
  return has_reached();
}

bool Group::look(int peer, const Step& field, std::uint64_t value) {
  const auto has_reached = [&] { return field.load(std::memory_order_acquire) >= value; };
  if (has_reached() || spinning_.wait(peer, field, value, cancelled_)) return true;
  for (int i = 0; i < options_.patience.yields; ++i) {
    ::sched_yield();
    if (!has_reached()) continue;
    spinning_.reached_after_yield();
    return true;
  }
  return false;
}

}  // namespace runjob::runtime
