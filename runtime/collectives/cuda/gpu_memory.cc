#include "runtime/collectives/cuda/gpu_memory.hpp"

#include <bit>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime::cuda {
namespace {

constexpr std::size_t kLeastBytes = 512;
/// Larger blocks are not rounded up to a power of two but to a multiple of this.
constexpr std::size_t kLargeBytes = 1u << 21;

std::size_t block_bytes(std::size_t bytes) {
  if (bytes <= kLeastBytes) return kLeastBytes;
  return bytes <= kLargeBytes ? std::bit_ceil(bytes) : (bytes + kLargeBytes - 1) / kLargeBytes * kLargeBytes;
}

Address address(void* memory) {
  return reinterpret_cast<Address>(memory);
}

}  // namespace

GpuMemory::~GpuMemory() {
  const MutexLock lock(mutex_);
  free_kept();
}

void* GpuMemory::allocate(std::size_t bytes) {
  const std::size_t block = block_bytes(bytes);
  const MutexLock lock(mutex_);
  try {
    if (const auto found = kept_.find(block); found != kept_.end()) {
      void* const memory = found->second;
      kept_.erase(found);
      used_.emplace(memory, block);
      return memory;
    }
    const CurrentGpu current(gpu_);
    Address memory = 0;
    if (driver().memory_allocate(&memory, block) != kSuccess) {
      free_kept();
      if (driver().memory_allocate(&memory, block) != kSuccess) return nullptr;
    }
    used_.emplace(reinterpret_cast<void*>(memory), block);
    return reinterpret_cast<void*>(memory);
  } catch (const Error&) {
    return nullptr;
  }
}

std::string GpuMemory::shortage(std::size_t bytes) const {
  try {
    const CurrentGpu current(gpu_);
    std::size_t free = 0, total = 0;
    check(gpu_, driver().memory_info(&free, &total), "asking for the memory that is free");
    return fmt::format("{} is out of memory: {} bytes were asked for, {} of {} are free", gpu_.text(),
                       block_bytes(bytes), free, total);
  } catch (const Error& error) {
    return error.what();
  }
}

bool GpuMemory::free(void* memory) {
  const MutexLock lock(mutex_);
  const auto found = used_.find(memory);
  if (found == used_.end()) return false;
  kept_.emplace(found->second, memory);
  used_.erase(found);
  return true;
}

void GpuMemory::clear(void* memory, std::size_t bytes) {
  const CurrentGpu current(gpu_);
  check(driver().set_bytes(address(memory), 0, bytes, stream_), "clearing memory of a GPU");
}

/// The context may be gone with the process; then there is nothing to free.
void GpuMemory::free_kept() {
  if (kept_.empty()) return;
  try {
    const CurrentGpu current(gpu_);
    for (const auto& [bytes, memory] : kept_) driver().memory_free(address(memory));
    kept_.clear();
  } catch (const Error&) {
    kept_.clear();
  }
}

}  // namespace runjob::runtime::cuda
