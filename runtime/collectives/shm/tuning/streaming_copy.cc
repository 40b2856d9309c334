#include "runtime/collectives/shm/tuning/streaming_copy.hpp"

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace runjob::runtime {

#if defined(__x86_64__)

void streaming_copy(void* target, const void* source, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  constexpr std::size_t kLine = 64, kVector = sizeof(__m128i);
  const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  copy_bytes(to, from, head);
  std::size_t done = head;
  for (; done + kLine <= bytes;
       done += kLine) {  // only whole lines: a line that is written in parts costs more than it saves
    for (std::size_t i = 0; i < kLine; i += kVector) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done + i), value);
    }
  }
  _mm_sfence();
  copy_bytes(to + done, from + done, bytes - done);
}

#else

void streaming_copy(void* to, const void* from, std::size_t bytes) {
  copy_bytes(to, from, bytes);
}

#endif

}  // namespace runjob::runtime
