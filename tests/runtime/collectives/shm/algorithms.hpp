#pragma once

#include <array>

#include "runtime/collectives/shm/tuning/algorithm.hpp"

/// Names for the algorithms that the tests go through.
namespace runjob::runtime {

inline constexpr Algorithm kOneStep{Path::kOneStep};
inline constexpr Algorithm kStreamedOneStep{Path::kOneStep, Stores::kStreaming};
inline constexpr Algorithm kPipeline{Path::kPipeline};
inline constexpr Algorithm kStreamedPipeline{Path::kPipeline, Stores::kStreaming};
inline constexpr Algorithm kStreamedOutput{Path::kPipeline, Stores::kCached, Stores::kStreaming};
inline constexpr Algorithm kStreamed{Path::kPipeline, Stores::kStreaming, Stores::kStreaming};
inline constexpr Algorithm kCma{Path::kCma};

/// Every algorithm that needs no other rank's own memory.
inline constexpr std::array kSharedMemoryAlgorithms = {kOneStep,          kStreamedOneStep, kPipeline,
                                                       kStreamedPipeline, kStreamedOutput,  kStreamed};

}  // namespace runjob::runtime
