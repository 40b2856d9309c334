#include "runtime/symmetric_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/collectives/shm/memory/offset_allocator.hpp"

namespace runjob::runtime {

void* SymmetricMemory::allocate(std::size_t bytes, const std::shared_ptr<BufferAllocator>& heap) {
  if (bytes > PTRDIFF_MAX) throw Error(Errc::kUnavailable, fmt::format("there is no memory for {} bytes", bytes));
  void* memory = heap ? heap->allocate(bytes) : nullptr;
  const bool is_symmetric = memory != nullptr;
  if (heap && !is_symmetric) {
    log::warn("{} bytes of symmetric memory are ordinary memory, since the shared memory cannot be mapped or is full",
              bytes);
  }
  if (!is_symmetric && ::posix_memalign(&memory, OffsetAllocator::kUnit, std::max<std::size_t>(bytes, 1)) != 0) {
    throw Error(Errc::kUnavailable, fmt::format("there is no memory for {} bytes", bytes));
  }
  const MutexLock lock(mutex_);
  owners_.emplace(memory, is_symmetric ? heap : nullptr);
  return memory;
}

void SymmetricMemory::free(void* memory) {
  if (memory == nullptr) return;
  std::shared_ptr<BufferAllocator> heap;
  {
    const MutexLock lock(mutex_);
    const auto found = owners_.find(memory);
    if (found == owners_.end()) {
      throw Error(Errc::kInvalidArgument, fmt::format("{} is no symmetric memory of this process", fmt::ptr(memory)));
    }
    heap = std::move(found->second);
    owners_.erase(found);
  }
  if (heap) {
    heap->free(memory);
  } else {
    ::free(memory);
  }
}

}  // namespace runjob::runtime
