#include "runtime/collectives/shm/ring.hpp"

#include <algorithm>
#include <utility>

namespace runjob::runtime {

std::uint64_t Ring::take_steps(std::size_t count, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  stride_ = std::clamp((bytes + kPage - 1) / kPage * kPage, kPage, slot_bytes());
  places_ = slot_bytes() / stride_;
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
