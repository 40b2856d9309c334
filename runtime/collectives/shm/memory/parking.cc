#include "runtime/collectives/shm/memory/parking.hpp"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace runjob::runtime {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(sizeof(std::atomic<std::uint32_t>) == 4);

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  // The futex is not private: threads of other processes wait as well.
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

timespec to_timespec(Clock::duration time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {static_cast<time_t>(seconds.count()),
          static_cast<long>(std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds).count())};
}

}  // namespace

void publish(Step& field, std::uint64_t value, Doorbell& doorbell) {
  field.exchange(value, std::memory_order_seq_cst);
  ring_if_needed(doorbell);
}

void ring_if_needed(Doorbell& doorbell) {
  if (doorbell.sleepers.load(std::memory_order_seq_cst) != 0) ring(doorbell);
}

void ring(Doorbell& doorbell) {
  doorbell.rings.fetch_add(1, std::memory_order_seq_cst);
  futex(doorbell.rings, FUTEX_WAKE, INT_MAX, nullptr);
}

bool sleep_once(Doorbell& doorbell, std::uint32_t seen, Clock::time_point deadline) {
  if (deadline == Clock::time_point::max()) {
    futex(doorbell.rings, FUTEX_WAIT, seen, nullptr);
    return true;
  }
  const Clock::duration left = deadline - Clock::now();
  if (left <= Clock::duration::zero()) return false;
  const timespec time = to_timespec(left);
  futex(doorbell.rings, FUTEX_WAIT, seen, &time);
  return true;
}

}  // namespace runjob::runtime
