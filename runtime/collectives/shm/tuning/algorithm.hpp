#pragma once

#include <cstdint>

namespace runjob::runtime {

/// How the bytes of a message that is not a small one get from rank to rank.
enum class Path : std::uint8_t {
  kOneStep,  ///< each rank writes its whole message into its cell, as with small messages, and the others read it there
  kPipeline,  ///< piece by piece, through the ring cells of each rank
  kCma,       ///< each rank reads the other ranks' buffers through the kernel (cross memory attach)
  kSymmetric  ///< each rank reads, and may write, the other ranks' buffers directly: all of them are symmetric memory
};

/// True if the ranks read each other's buffers on this path: a buffer must then stay as it is until all have finished.
constexpr bool reads_buffers(Path path) {
  switch (path) {
    case Path::kOneStep:
    case Path::kPipeline:
      return false;
    case Path::kCma:
    case Path::kSymmetric:
      return true;
  }
  return true;
}

/// True if the ranks may write each other's outputs on this path: a rank whose message has failed must then wait until
/// the others have stopped writing.
constexpr bool writes_buffers(Path path) {
  switch (path) {
    case Path::kOneStep:
    case Path::kPipeline:
    case Path::kCma:
      return false;
    case Path::kSymmetric:
      return true;
  }
  return true;
}

/// How memory is written.
enum class Stores : std::uint8_t {
  kCached,    ///< with memcpy()
  kStreaming  ///< past the caches, with non-temporal stores (streaming_copy.hpp)
};

/// How a message is moved.
struct Algorithm {
  Path path = Path::kPipeline;
  Stores in = Stores::kCached;   ///< into shared memory: into the cell or the ring cells
  Stores out = Stores::kCached;  ///< into the output

  bool operator==(const Algorithm&) const = default;
};

/// The name of an algorithm in the timeline.
constexpr const char* name_of(const Algorithm& algorithm) {
  const bool is_streaming = algorithm.in == Stores::kStreaming || algorithm.out == Stores::kStreaming;
  switch (algorithm.path) {
    case Path::kOneStep:
      return is_streaming ? "streamed one step" : "one step";
    case Path::kPipeline:
      return is_streaming ? "streamed pipeline" : "pipeline";
    case Path::kCma:
      return "CMA";
    case Path::kSymmetric:
      return "symmetric memory";
  }
  return nullptr;
}

}  // namespace runjob::runtime
