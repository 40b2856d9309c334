#include "runtime/operations/fused_allreduce.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "runtime/collectives/packing.hpp"

namespace runjob::runtime {
namespace {

class FusedAllreduce {
 public:
  FusedAllreduce(const RunCall& run, EngineTimeline& timeline, FusionBuffer& buffer, const FusionKey& key)
      : run_(run), timeline_(timeline), buffer_(buffer), key_(key) {
    const bool is_compressed = key.wire != key.dtype, shrinks = std::abs(key.postscale) <= 1;
    call_.dtype = key.wire;
    call_.op = key.op;
    call_.prescale = is_compressed ? 1 : key.prescale;
    call_.postscale = is_compressed && !shrinks ? 1 : key.postscale;
    before_ = is_compressed ? key.prescale : 1;
    after_ = is_compressed && !shrinks ? key.postscale : 1;
  }

  Status run(std::span<const FusedTensor> tensors) {
    call_.count = 0;
    for (const FusedTensor& tensor : tensors) call_.count += tensor.count;
    if (!buffer_.has_room(call_.count * size_of(key_.wire))) begin_stage_of(timeline_, tensors, "INIT_FUSION_BUFFER");
    std::byte* const memory = buffer_.room(call_.count * size_of(key_.wire));
    call_.input = call_.output = memory;
    if (timeline_.is_on()) {
      call_.on_stage = [&](const char* stage, const char* algorithm) {
        begin_stage_of(timeline_, tensors, stage, algorithm);
      };
    }
    begin_stage_of(timeline_, tensors, "MEMCPY_IN_FUSION_BUFFER");
    std::byte* place = memory;
    for (const FusedTensor& tensor : tensors) {
      convert(key_.wire, place, key_.dtype, tensor.input, tensor.count, before_);
      place += tensor.count * size_of(key_.wire);
    }
    begin_stage_of(timeline_, tensors, "QUEUE");
    Status status = run_(call_);
    if (!status.ok()) return status;
    begin_stage_of(timeline_, tensors, "MEMCPY_OUT_FUSION_BUFFER");
    place = memory;
    for (const FusedTensor& tensor : tensors) {
      convert(key_.dtype, tensor.output, key_.wire, place, tensor.count, after_);
      place += tensor.count * size_of(key_.wire);
    }
    return status;
  }

 private:
  const RunCall& run_;
  EngineTimeline& timeline_;
  FusionBuffer& buffer_;
  const FusionKey key_;
  Call call_;
  double before_, after_;  ///< factors on the way into the buffer and out of it
};

/// `count` elements of `whole`, from the element `first` on.
FusedTensor piece_of(const FusedTensor& whole, std::size_t first, std::size_t count, DType dtype) {
  const std::size_t offset = first * size_of(dtype);
  return {whole.name, static_cast<const std::byte*>(whole.input) + offset,
          static_cast<std::byte*>(whole.output) + offset, count};
}

}  // namespace

std::byte* FusionBuffer::room(std::size_t bytes) {
  if (bytes <= bytes_) return memory_.get();
  bytes_ = 0;
  memory_ = {};  // the old one first: both need not fit
  memory_ = allocate(buffers_, MemoryKind::kHost, bytes);
  bytes_ = bytes;
  return memory_.get();
}

void begin_stage_of(EngineTimeline& timeline, std::span<const FusedTensor> tensors, const char* stage,
                    const char* algorithm) {
  if (!timeline.is_on()) return;
  for (const FusedTensor& tensor : tensors) {
    timeline.end_activity(*tensor.name);
    timeline.begin_activity(*tensor.name, stage, algorithm);
  }
}

Status run_fused(const RunCall& run, EngineTimeline& timeline, FusionBuffer& buffer, const FusionKey& key,
                 std::span<const FusedTensor> tensors, std::size_t most_bytes) {
  try {
    FusedAllreduce fused(run, timeline, buffer, key);
    const std::size_t most = std::max<std::size_t>(1, most_bytes / size_of(key.wire));
    if (tensors.size() > 1 || tensors.front().count <= most) return fused.run(tensors);
    for (std::size_t first = 0; first < tensors.front().count; first += most) {
      const FusedTensor piece =
          piece_of(tensors.front(), first, std::min(most, tensors.front().count - first), key.dtype);
      Status status = fused.run({&piece, 1});
      if (!status.ok()) return status;
    }
    return {};
  } catch (const std::exception& error) {  // the other ranks cannot go on without this one
    return Status(Errc::kSystem, std::string("an allreduce of several tensors: ") + error.what());
  }
}

}  // namespace runjob::runtime
