#pragma once

#include <cstddef>
#include <cstring>

namespace runjob::runtime {

/// memcpy for memory that is not in the cache and will not be read soon, or by another processor: writes past the cache, so that the
/// processor does not fetch every line that it is going to overwrite, nor ask another one for it. glibc's memcpy does so too, but
/// only in calls of many megabytes. Also of what may be nothing, from or to null.
/// The writes are seen in order by other threads after whatever hands the memory over to them.
/// Source  Intel 64 and IA-32 Architectures Optimization Reference Manual, "Non-temporal Stores".
void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes);

/// memcpy(), likewise.
inline void plain_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

/// One of the two.
using CopyFunction = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

/// What writes a message into slots, and from there to the output.
struct Copies {
  CopyFunction in = &plain_copy, out = &plain_copy;
};

}  // namespace runjob::runtime
