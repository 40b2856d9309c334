#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace runjob::runtime {

/// A shorter block is copied without `rep movsb`.
constexpr std::size_t kLeastLongCopy = 2048;

/// copy_bytes() of memory where `rep movsb` is slow. `bytes` may be any number.
[[gnu::noinline]] inline void copy_without_string_instruction(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
#if defined(__x86_64__)
  constexpr std::size_t kBlock = 4 * sizeof(__m128i);
  for (; done + kBlock <= bytes; done += kBlock) {
    const auto* source = reinterpret_cast<const __m128i*>(from + done);
    auto* target = reinterpret_cast<__m128i*>(to + done);
    const __m128i first = _mm_loadu_si128(source), second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2), fourth = _mm_loadu_si128(source + 3);
    _mm_storeu_si128(target, first);
    _mm_storeu_si128(target + 1, second);
    _mm_storeu_si128(target + 2, third);
    _mm_storeu_si128(target + 3, fourth);
    asm volatile("" : : : "memory");  // else the compiler may take the loop for memcpy(), and call that
  }
#endif
  if (done < bytes) std::memcpy(to + done, from + done, bytes - done);
}

/// True when `rep movsb` is slow: the target begins 1 to 31 bytes after the source, modulo the size of a page.
inline bool is_slow_to_copy(const void* to, const void* from) {
#if defined(__x86_64__)
  constexpr std::uintptr_t kPage = 4096, kMostAfter = 31;
  return (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from) - 1) % kPage < kMostAfter;
#else
  return static_cast<void>(to), static_cast<void>(from), false;
#endif
}

/// Copies as memcpy() does, but as fast wherever the memory lies. glibc's memcpy() copies long blocks with `rep movsb`,
/// which AMD's Zen 3 executes at a tenth of its speed when is_slow_to_copy(). That is common: glibc's malloc() gives
/// large blocks that begin 16 bytes after a page does, and memory that processes share begins with a page.
///
/// Shape    zero bytes are allowed, from and to null as well. The blocks do not overlap.
/// Threads  any.
/// Source   measured (docs/developers/measurements.md); glibc's bug 30994 is about the same of Zen 4.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes >= kLeastLongCopy && is_slow_to_copy(to, from))
    return copy_without_string_instruction(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace runjob::runtime
