#include "runtime/collectives/shm/tuning/processor_move.hpp"

#include <sched.h>

namespace runjob::runtime {

bool move_away_from(std::span<const int> taken) {
  cpu_set_t allowed;
  // Fails if the machine has more processors than the set has room for.
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t free = allowed;
  for (const int processor : taken) {
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_CLR(static_cast<std::size_t>(processor), &free);
  }
  if (CPU_COUNT(&free) == 0 || ::sched_setaffinity(0, sizeof free, &free) != 0) return false;
  return ::sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

}  // namespace runjob::runtime
