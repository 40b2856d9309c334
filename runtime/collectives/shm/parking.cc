#include "runtime/collectives/shm/parking.hpp"

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
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);  // not private: other processes wait too
}

timespec to_timespec(Clock::duration time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {static_cast<time_t>(seconds.count()),
          static_cast<long>(std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds).count())};
}

}  // namespace

// The sleeper says that it sleeps and then looks at the word; the writer writes the word and then looks for sleepers. All
// four are sequentially consistent, so at least one sees the other. Read-modify-writes stand where fences would do, because
// ThreadSanitizer does not see fences.

void publish(Step& word, std::uint64_t value, Doorbell& doorbell) {
  word.exchange(value, std::memory_order_seq_cst);
  if (doorbell.sleepers.load(std::memory_order_seq_cst) != 0) ring(doorbell);
}

void ring(Doorbell& doorbell) {
  doorbell.rings.fetch_add(1, std::memory_order_seq_cst);
  futex(doorbell.rings, FUTEX_WAKE, INT_MAX, nullptr);
}

bool sleep_until(const Step& word, std::uint64_t value, Doorbell& doorbell, const std::atomic<std::uint32_t>& ended,
                 std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  doorbell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool in_time = true;
  for (;;) {
    const std::uint32_t seen =
        doorbell.rings.load(std::memory_order_seq_cst);  // before the looks: a ring after it counts
    if (word.load(std::memory_order_seq_cst) >= value || ended.load(std::memory_order_seq_cst) != 0) break;
    const Clock::duration left = deadline - Clock::now();
    in_time = left > Clock::duration::zero();
    if (!in_time) break;
    const timespec time = to_timespec(left);
    futex(doorbell.rings, FUTEX_WAIT, seen, &time);  // whatever ends it, the loop looks again
  }
  doorbell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return in_time;
}

}  // namespace runjob::runtime
