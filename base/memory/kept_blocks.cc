#include "base/memory/kept_blocks.hpp"

#include <new>

namespace runjob {

KeptBlocks::~KeptBlocks() {
  while (kept_ != nullptr) ::operator delete(std::exchange(kept_, kept_->next));
}

void* KeptBlocks::take(std::size_t bytes) {
  {
    const MutexLock lock(mutex_);
    if (kept_ != nullptr) return std::exchange(kept_, kept_->next);
  }
  return ::operator new(bytes);
}

void KeptBlocks::give_back(void* block) noexcept {
  if (!kKeepsMemory) return ::operator delete(block);
  const MutexLock lock(mutex_);
  kept_ = new (block) Block{kept_};
}

}  // namespace runjob
