#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "base/mutex.hpp"
#include "runtime/collectives/shm/symmetric_heap.hpp"

namespace runjob::runtime {

/// The memory that this process's user has from runjob_symmetric_alloc(), of every job that it has been in.
/// Threads  any.
class SymmetricMemory {
 public:
  /// At least `bytes` bytes, page-aligned, in `heap`; without one, ordinary memory.
  /// Errors  Error(kUnavailable).
  void* allocate(std::size_t bytes, const std::shared_ptr<SymmetricHeap>& heap);

  /// Null is allowed. Errors  Error(kInvalidArgument) for what allocate() did not return, or was freed before.
  void free(void* memory);

 private:
  Mutex mutex_;
  /// Where each piece is from; null: it is ordinary. A heap goes with its last piece, if its job has.
  std::unordered_map<void*, std::shared_ptr<SymmetricHeap>> owners_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
