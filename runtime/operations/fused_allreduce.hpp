#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/collectives/backend.hpp"
#include "runtime/operations/fusion_plan.hpp"
#include "runtime/operations/run_operation.hpp"
#include "runtime/timeline/engine_timeline.hpp"

namespace runjob::runtime {

/// The host memory for tensors that are fused or compressed: the backend's own, where it has some. It is allocated when
/// it is first needed; it grows, and is kept.
/// Threads  one.
class FusionBuffer {
 public:
  explicit FusionBuffer(FindBuffers buffers) : buffers_(std::move(buffers)) {}

  /// Returns at least `bytes` bytes with undefined contents, valid until the next call.
  /// Errors  std::bad_alloc.
  std::byte* room(std::size_t bytes);
  /// True if room() need not allocate.
  bool has_room(std::size_t bytes) const { return bytes <= bytes_; }

 private:
  const FindBuffers buffers_;
  Buffer memory_;
  std::size_t bytes_ = 0;
};

/// A tensor that goes through the buffer.
struct FusedTensor {
  const std::string* name = nullptr;  ///< of its operation, for the timeline
  const void* input = nullptr;
  void* output = nullptr;  ///< may be `input`
  std::size_t count = 0;   ///< elements
};

/// Begins a stage of all tensors in the timeline. `algorithm` may be null.
void begin_stage_of(EngineTimeline& timeline, std::span<const FusedTensor> tensors, const char* stage,
                    const char* algorithm = nullptr);

/// Runs one allreduce of all `tensors`, which have `key` in common. They are copied into the buffer, scaled and
/// compressed on the way, reduced there, and copied out of it. A tensor that is larger than `most_bytes` goes in
/// pieces. Values are prescaled before they are compressed; a postscale above 1 is applied after they are uncompressed.
/// Blocks.
/// Errors  values: run()'s; kSystem without memory.
Status run_fused(const RunCall& run, EngineTimeline& timeline, FusionBuffer& buffer, const FusionKey& key,
                 std::span<const FusedTensor> tensors, std::size_t most_bytes);

}  // namespace runjob::runtime
