#pragma once

#include <algorithm>
#include <cstddef>

/// Hints that cache lines of shared memory are needed soon: to read data that another processor has written, or to
/// overwrite data that it has read. The processor fetches them while the caller continues, so that several lines are in
/// transit at once.
namespace runjob::runtime {

/// The processor would only queue further requests.
inline constexpr std::size_t kMostPrefetchedBytes = 4096;
inline constexpr std::size_t kCacheLineBytes = 64;

inline void prefetch_to_read(const std::byte* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < std::min(bytes, kMostPrefetchedBytes); i += kCacheLineBytes)
    __builtin_prefetch(memory + i, /*rw=*/0);
}

inline void prefetch_to_write(std::byte* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < std::min(bytes, kMostPrefetchedBytes); i += kCacheLineBytes) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0"
                 :
                 : "m"(memory[i]));  // GCC's own only when it may rely on it; elsewhere it does nothing
#else
    __builtin_prefetch(memory + i, /*rw=*/1);
#endif
  }
}

}  // namespace runjob::runtime
