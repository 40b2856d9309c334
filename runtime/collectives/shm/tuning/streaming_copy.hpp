#pragma once

#include <cstddef>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/shm/tuning/algorithm.hpp"

namespace runjob::runtime {

/// Copies as memcpy() does, with non-temporal stores: they write past the caches, so that the processor neither fetches
/// each line that it is going to overwrite nor asks another processor for it. For memory that is not in the cache and
/// that is not read soon, or is read by another processor. glibc's memcpy() uses such stores only in calls of many
/// megabytes.
///
/// Shape    zero bytes are allowed, from and to null as well.
/// Threads  any. Another thread sees the copied bytes when the memory has been handed over to it, as with memcpy().
/// Source   Intel 64 and IA-32 Architectures Optimization Reference Manual, "Non-temporal Stores".
void streaming_copy(void* to, const void* from, std::size_t bytes);

/// The type of copy_bytes() and streaming_copy().
using CopyFunction = void (*)(void* to, const void* from, std::size_t bytes);

constexpr CopyFunction copy_with(Stores stores) {
  return stores == Stores::kStreaming ? &streaming_copy : &copy_bytes;
}

}  // namespace runjob::runtime
