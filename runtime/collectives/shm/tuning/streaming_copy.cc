#include "runtime/collectives/shm/tuning/streaming_copy.hpp"

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace runjob::runtime {

#if defined(__x86_64__)

void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64, kVector = sizeof(__m128i);
  const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  plain_copy(to, from, head);
  std::size_t done = head;
  for (; done + kLine <= bytes;
       done += kLine) {  // only whole lines: a line that is written in parts costs more than it saves
    for (std::size_t i = 0; i < kLine; i += kVector) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done + i), value);
    }
  }
  _mm_sfence();
  plain_copy(to + done, from + done, bytes - done);
}

#else

void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  plain_copy(to, from, bytes);
}

#endif

}  // namespace runjob::runtime
