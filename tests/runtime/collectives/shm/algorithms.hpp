#pragma once

#include <algorithm>
#include <array>

#include "runtime/collectives/shm/tuning/algorithm_tuner.hpp"

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

/// A new candidate is tested with every collective once it is in the list above.
static_assert(std::all_of(kCandidates.begin(), kCandidates.end(), [](const Algorithm& candidate) {
  return reads_buffers(candidate.path) || std::find(kSharedMemoryAlgorithms.begin(), kSharedMemoryAlgorithms.end(),
                                                    candidate) != kSharedMemoryAlgorithms.end();
}));

}  // namespace runjob::runtime
