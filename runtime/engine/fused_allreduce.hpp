#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/collectives/backend.hpp"
#include "runtime/engine/fusion_plan.hpp"
#include "runtime/engine/run_operation.hpp"
#include "runtime/timeline/engine_timeline.hpp"

namespace runjob::runtime {

/// The memory in which tensors travel that are fused or compressed: symmetric where there is some. Made when it is first needed;
/// it grows, and is kept.
/// Threads  one.
class FusionBuffer {
 public:
  /// `heap` may be null.
  explicit FusionBuffer(std::shared_ptr<SymmetricHeap> heap) : heap_(std::move(heap)) {}
  ~FusionBuffer() { free(); }
  FusionBuffer(const FusionBuffer&) = delete;
  FusionBuffer& operator=(const FusionBuffer&) = delete;

  /// At least `bytes` bytes, until the next call. Their contents are anything.
  /// Errors  std::bad_alloc.
  std::byte* room(std::size_t bytes);

 private:
  void free();

  std::shared_ptr<SymmetricHeap> heap_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<std::byte[]> ordinary_;  ///< memory_, when it is not in the heap
  std::size_t bytes_ = 0;
};

/// A tensor on its way through the buffer.
struct FusedTensor {
  const std::string* name = nullptr;  ///< its operation's, for the timeline
  const void* input = nullptr;
  void* output = nullptr;  ///< may be `input`
  std::size_t count = 0;   ///< elements
};

/// One allreduce of all `tensors`, which have `key` in common: copied into the buffer, scaled and compressed on the way, reduced
/// there, and copied out of it. One that is larger than `most_bytes` goes in pieces. When values are compressed, prescaling is
/// done before that; postscaling, if it makes them larger, when they are uncompressed again. Blocks.
/// Errors  values: run()'s; kSystem without memory.
Status run_fused(const RunCall& run, EngineTimeline& timeline, FusionBuffer& buffer, const FusionKey& key,
                 std::span<const FusedTensor> tensors, std::size_t most_bytes);

}  // namespace runjob::runtime
