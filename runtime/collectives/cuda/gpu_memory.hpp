#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "base/mutex.hpp"
#include "runtime/collectives/cuda/gpu.hpp"
#include "runtime/collectives/memory.hpp"

namespace runjob::runtime::cuda {

/// Memory of one GPU for results and zeros. Freed blocks are kept and given out again, because CUDA waits for the whole
/// device when it frees memory. They go back to CUDA when the device has no room for another block, and when the
/// allocator is destroyed.
///
/// Order    Only the collectives' stream writes to a block. Therefore free() may be called while an operation still
///          writes to the block.
/// Owner    as BufferAllocator: shared by the backend and the buffers. The GPU is never destroyed; the stream is lent.
/// Threads  any.
/// Errors   none from allocate(), which returns null; Error(kDevice) from clear().
class GpuMemory : public BufferAllocator {
 public:
  /// `stream` is that of the collectives.
  GpuMemory(Gpu& gpu, Stream stream) : gpu_(gpu), stream_(stream) {}
  ~GpuMemory() override;

  void* allocate(std::size_t bytes) override;
  std::string shortage(std::size_t bytes) const override;
  bool free(void* memory) override;
  void clear(void* memory, std::size_t bytes) override;

 private:
  void free_kept() REQUIRES(mutex_);

  Gpu& gpu_;
  const Stream stream_;
  Mutex mutex_;
  std::unordered_map<void*, std::size_t> used_ GUARDED_BY(mutex_);  ///< with their sizes
  std::multimap<std::size_t, void*> kept_ GUARDED_BY(mutex_);       ///< by size
};

}  // namespace runjob::runtime::cuda
