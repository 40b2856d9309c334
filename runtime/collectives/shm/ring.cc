#include "runtime/collectives/shm/ring.hpp"

#include <algorithm>
#include <utility>

namespace runjob::runtime {

std::uint64_t Ring::take_steps(std::size_t count, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  stride_ = std::clamp((bytes + kPage - 1) / kPage * kPage, kPage, cell_bytes());
  parts_ = cell_bytes() / stride_;
  return std::exchange(next_, next_ + count);
}

void Ring::wait_free(std::uint64_t step) {
  group_.check();
  if (step <= Layout::kRingCells) return;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) group_.wait(peer, group_.fields(peer).progress.done, step - Layout::kRingCells);
  }
}

}  // namespace runjob::runtime
