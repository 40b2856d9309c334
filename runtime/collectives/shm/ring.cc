#include "runtime/collectives/shm/ring.hpp"

#include <utility>

namespace runjob::runtime {

std::uint64_t Ring::take_steps(std::size_t count) {
  return std::exchange(next_, next_ + count);
}

void Ring::wait_free(std::uint64_t step) {
  group_.check();
  if (step <= Layout::kSlots) return;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) group_.wait(peer, group_.words(peer).progress.done, step - Layout::kSlots);
  }
}

}  // namespace runjob::runtime
