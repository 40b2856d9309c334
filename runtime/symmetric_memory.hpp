#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "base/mutex.hpp"
#include "runtime/collectives/memory.hpp"

namespace runjob::runtime {

/// The memory that the user of this process has allocated with runjob_symmetric_alloc(), in every job that the process
/// has been in.
/// Threads  any.
class SymmetricMemory {
 public:
  /// Allocates at least `bytes` bytes, page-aligned, in `heap`; without a heap, ordinary memory.
  /// Errors  Error(kUnavailable).
  void* allocate(std::size_t bytes, const std::shared_ptr<BufferAllocator>& heap);

  /// Frees memory of allocate(). Null is allowed.
  /// Errors  Error(kInvalidArgument) for an address that allocate() did not return or that was freed before.
  void free(void* memory);

 private:
  Mutex mutex_;
  /// The heap of each allocation; null for ordinary memory. A heap is destroyed with its last allocation if its job has
  /// ended.
  std::unordered_map<void*, std::shared_ptr<BufferAllocator>> owners_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
